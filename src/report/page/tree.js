// The tree of modules of a play, in which equal layers are folded into one box, and the items that are visible.

/// A box of the tree. `members` are the equal layers of a fold, of which one, `shownMember`, is visible.
class Box {
  constructor(parent, name, path, backward) {
    Object.assign(this, { parent, name, path, backward, kids: new Map(), ops: [], open: false, members: null,
        shownMember: 0 });
    this.depth = parent ? parent.depth + 1 : 0;
  }
  kid(name, path) {
    if (!this.kids.has(name)) this.kids.set(name, new Box(this, name, path, this.backward));
    return this.kids.get(name);
  }
}

export class Tree {
  /// If `played`, the boxes of ops are the calls that the plan makes: nodes that it fuses are one box.
  constructor(play, played) {
    this.play = play;
    this.owner = played && play.plan ? play.plan.owner : null;
    this.root = new Box(null, "", "", false);
    this.home = new Array(play.count);
    const hasBackward = play.op.some((_, node) => play.isBackward(node) && !play.isHidden(node));
    for (let node = 0; node < play.count; ++node) {
      if (play.isHidden(node) || (this.owner && this.owner[node] !== node)) continue;
      let box = this.root;
      if (hasBackward) box = box.kid(play.isBackward(node) ? "backward" : "forward", "");
      box.backward = hasBackward && play.isBackward(node);
      let path = "";
      const slash = play.sites[play.site[node]].path.startsWith("/");
      for (const word of play.modules(node)) {
        path = slash ? path + "/" + word : path ? path + "." + word : word;
        box = box.kid(word, path);
      }
      box.ops.push(node);
      this.home[node] = box;
    }
    this.measure(this.root);
    this.fold(this.root);
    this.root.open = true;
    for (const kid of this.root.kids.values()) if (hasBackward) kid.open = true;
    this.openWhile(40);
  }

  /// Counts ops, and describes the structure of each box, by which layers are equal.
  measure(box) {
    box.count = box.ops.length;
    box.first = box.ops[0] ?? Infinity;
    let inside = "";
    for (const [name, kid] of box.kids) {
      this.measure(kid);
      box.count += kid.count;
      box.first = Math.min(box.first, kid.first);
      inside += name + kid.structure + ",";
    }
    box.structure = `(${inside})`;
  }

  /// Folds runs of at least three layers 0, 1, 2 … that have the same modules.
  fold(box) {
    const layers = [...box.kids.values()].filter(kid => /^\d+$/.test(kid.name)).sort((a, b) => a.name - b.name);
    for (const kid of box.kids.values()) this.fold(kid);
    for (let i = 0; i < layers.length;) {
      let end = i + 1;
      while (end < layers.length && layers[end].structure === layers[i].structure &&
        Number(layers[end].name) === Number(layers[end - 1].name) + 1) ++end;
      if (end - i >= 3) this.makeFold(box, layers.slice(i, end));
      i = end;
    }
  }
  makeFold(box, members) {
    const whole = members.length === box.kids.size && box.ops.length === 0 && box.parent !== null;
    const title = `${box.name || "layer"} × ${members.length}`;
    const fold = whole ? box : new Box(box, title, box.path, box.backward);
    if (whole) fold.name = title;
    for (const member of members) {
      box.kids.delete(member.name);
      this.move(member, fold);
    }
    Object.assign(fold, { members, count: members.reduce((sum, each) => sum + each.count, 0),
      first: members.reduce((first, each) => Math.min(first, each.first), Infinity) });
    if (!whole) box.kids.set(title, fold);
  }
  move(box, parent) {
    Object.assign(box, { parent, depth: parent.depth + 1 });
    for (const kid of box.kids.values()) this.move(kid, box);
  }

  /// Opens the largest boxes that are no folds, as long as few items are visible.
  openWhile(most) {
    const sizeOf = box => box.kids.size + box.ops.length;
    const shown = [];
    const look = box => {
      if (!box.open) return shown.push(box);
      for (const kid of box.kids.values()) look(kid);
    };
    look(this.root);
    const open = [this.root, ...this.root.kids.values()].filter(box => box.open);
    let visible = shown.length + open.reduce((sum, box) => sum + box.ops.length, 0);
    const next = () => shown.sort((a, b) => sizeOf(a) - sizeOf(b)).find(each => !each.members && sizeOf(each) > 0);
    for (let box = next(); box; box = next()) {
      visible += sizeOf(box) - 1;
      if (visible > most) return;
      box.open = true;
      shown.splice(shown.indexOf(box), 1, ...box.kids.values());
    }
  }

  /// Opens every box around a node, so that it is visible.
  reveal(node) {
    const owner = this.owner ? this.owner[node] : node;
    for (let box = this.home[owner], inner = null; box; inner = box, box = box.parent) {
      if (box.members && inner) box.shownMember = box.members.indexOf(inner);
      box.open = true;
    }
    return owner;
  }

  /// Makes the visible items. An item is an op { node }, a closed box or an open box { box, items }.
  visible() {
    this.itemOf = new Array(this.play.count).fill(null);
    this.made = 0;
    return this.itemsOf(this.root, null);
  }
  itemsOf(box, container) {
    const item = { id: this.made++, box, container, items: [], first: box.first,
        depth: container ? container.depth + 1 : 0, backward: box.backward };
    const shownBox = box.members && box.open ? box.members[box.shownMember] : box;
    if (!box.open) {
      this.represent(box, item);
      return item;
    }
    for (const other of box.members ?? []) if (other !== shownBox) this.represent(other, item);
    for (const node of shownBox.ops) item.items.push(this.opItem(node, item, ""));
    for (const kid of shownBox.kids.values())
      item.items.push(kid.count === 1 && kid.ops.length === 1 ? this.opItem(kid.ops[0], item, kid.name)
          : this.itemsOf(kid, item));
    item.items.sort((a, b) => a.first - b.first);
    return item;
  }
  opItem(node, container, module) {
    return (this.itemOf[node] = { id: this.made++, node, module, container, first: node, depth: container.depth + 1,
        backward: container.backward });
  }
  represent(box, item) {
    for (const node of box.ops) this.itemOf[node] = item;
    for (const kid of box.kids.values()) this.represent(kid, item);
    if (box.members) for (const member of box.members) this.represent(member, item);
  }

  /// The edges between visible items: { from, to, node }, each pair once.
  edges() {
    const { play, itemOf, owner } = this, found = new Map();
    const add = (node, reader) => {
      const from = itemOf[owner ? owner[node] : node], to = itemOf[owner ? owner[reader] : reader];
      if (!from || !to || from === to) return;
      const key = from.id * this.made + to.id;
      if (!found.has(key)) found.set(key, { from, to, node });
    };
    for (let reader = 0; reader < play.count; ++reader) {
      const inputs = play.inputs[reader];
      for (let i = 0; i < inputs.length; i += 2) if (!play.isHidden(inputs[i])) add(inputs[i], reader);
    }
    return [...found.values()];
  }
}
