#!/usr/bin/env python3
"""What packages say about the project, checked against the project: versions, dependencies, lists of files, scripts, symbols.

usage: check.py SOURCE_ROOT BUILD_ROOT"""
import base64, collections, fnmatch, hashlib, json, re, shutil, subprocess, sys, tempfile, zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import holds, report, skips

source, build = Path(sys.argv[1]), Path(sys.argv[2])
packaging = source / "packaging"
VERSION = re.search(r"version: '([^']*)'", (source / "meson.build").read_text())[1]
# Libraries: how their headers begin, and their packages in Debian, Conan, vcpkg, conda-forge and Homebrew. "" stands for
# what the packager lacks: Conan takes it from the system, the others have a source of it.
LIBRARIES = {
    "CLI11": ("CLI/", "libcli11-dev", "cli11", "cli11", "cli11", "cli11"),
    "libjpeg": ("jpeglib.h jerror.h", "libjpeg-dev", "libjpeg-turbo", "libjpeg-turbo", "libjpeg-turbo", "jpeg-turbo"),
    "libpcre2-8": ("pcre2.h", "libpcre2-dev", "pcre2", "pcre2", "pcre2", "pcre2"),
    "libpng": ("png.h", "libpng-dev", "libpng", "libpng", "libpng", "libpng"),
    "libutf8proc": ("utf8proc.h", "libutf8proc-dev", "utf8proc", "utf8proc", "libutf8proc", "utf8proc"),
    "libxxhash": ("xxhash.h", "libxxhash-dev", "xxhash", "xxhash", "xxhash", "xxhash"),
    "nlohmann_json": ("nlohmann/", "nlohmann-json3-dev", "nlohmann_json", "nlohmann-json", "nlohmann_json", "nlohmann-json"),
    "protozero": ("protozero/", "libprotozero-dev", "protozero", "protozero", "protozero", "protozero"),
    "random123": ("Random123/", "librandom123-dev", "", "random123", "", ""),
    "sentencepiece": ("sentencepiece_", "libsentencepiece-dev", "", "sentencepiece", "libsentencepiece", "sentencepiece"),
    "xsimd": ("xsimd/", "libxsimd-dev", "xsimd", "xsimd", "xsimd", "xsimd"),
    "xtensor": ("xtensor/", "libxtensor-dev", "xtensor", "xtensor", "xtensor", "xtensor"),
    "zlib": ("zlib.h", "zlib1g-dev", "zlib", "zlib", "zlib", "zlib"),
}
# The compiler, the C library and the kernel have these; packages leave MPI out.
SYSTEM = re.compile(r"\w+|(sys|linux)/\w+\.h|(arm_neon|cpuid|dlfcn|fcntl|fnmatch|immintrin|malloc|mpi|poll|pthread|sched|signal|stddef|stdint|"
                    r"unistd)\.h")

OLD_GLIBC = (2, 28)  # what the library of the wheel needs
# Functions of this glibc that have newer versions in later ones.
SINCE_LONG = set("""dladdr dlclose dlerror dlopen dlsym exp exp2f expf fstat fstat64 log log2 log2f logf lstat lstat64 pow powf pthread_attr_getstack
                    pthread_create pthread_detach pthread_getattr_np pthread_join pthread_key_create pthread_mutex_trylock pthread_once
                    pthread_rwlock_rdlock pthread_rwlock_unlock pthread_rwlock_wrlock stat stat64""".split())


def libraries_in(*folders):
    """The libraries whose headers the files of folders include, and the other headers."""
    found, others = set(), set()
    for folder in folders:
        for path in (source / folder).rglob("*.[hc]pp"):
            for header in re.findall(r"^\s*#\s*include\s*<([^>]+)>", path.read_text(), re.M):
                owners = [name for name, (begins, *_) in LIBRARIES.items() if header.startswith(tuple(begins.split()))]
                found.update(owners)
                if not owners and not SYSTEM.fullmatch(header):
                    others.add(header)
    return found, others


def control():
    """debian/control: the fields of each paragraph."""
    paragraphs = (packaging / "debian/control").read_text().split("\n\n")
    fields = [dict(re.findall(r"^([\w-]+):((?:.*\n?)(?: .*\n?)*)", text + "\n", re.M)) for text in paragraphs]
    return {each.get("Package", each.get("Source")).strip() + ("" if "Package" in each else " source"): each for each in fields}


def names(field):
    """The packages of a field such as Depends, without versions."""
    return {re.match(r"\s*([\w.+${}:-]+)", each)[1] for each in field.split(",") if each.strip()}


def versions():
    said = {
        "debian/changelog": re.match(r"xtape \(([^)]*)\)", (packaging / "debian/changelog").read_text())[1],
        "xtape.h": re.search(r'The version of the library, "([^"]*)"', (source / "include/xtape.h").read_text())[1],
        "docs/changelog.md": re.search(r"^## (\S+)", (source / "docs/changelog.md").read_text(), re.M)[1],
        "README.md": re.search(r"\*\*Status\*\*: ([\d.]+\d)", (source / "README.md").read_text())[1],
        "vcpkg.json": json.loads((packaging / "vcpkg/vcpkg.json").read_text())["version"],
        "recipe.yaml": re.search(r'^  version: "([^"]*)"', (packaging / "conda/recipe.yaml").read_text(), re.M)[1],
        "xtape.rb": re.search(r'^  version "([^"]*)"', (packaging / "homebrew/xtape.rb").read_text(), re.M)[1],
        "xtape-c.map": re.search(r"^XTAPE_(\S+)", (source / "src/c/xtape-c.map").read_text(), re.M)[1] + VERSION[VERSION.rindex("."):],
    }
    for place, version in said.items():
        holds(f"the version in {place}", version == VERSION, version)
    literal = [path.name for path in packaging.rglob("*") if path.is_file() and path.name not in said and path.parent.name != "debian"
               and re.search(rf"(?<![\d.])(?<!sentencepiece==)(?<!sentencepiece-){re.escape(VERSION)}(?![\d.])", path.read_text(errors="replace"))]
    holds("scripts read the version from meson.build", literal == [], str(literal))


def debian():
    fields = control()
    used, others = libraries_in("src", "include")
    holds("every header of another project is known here", others == set(), str(others))
    builds = [source / "meson.build", *(source / "src").rglob("meson.build")]
    asked = set(re.findall(r"dependency\('([\w-]+)'", "".join(path.read_text() for path in builds)))
    inside = {"threads", "dl", "doctest", "openblas"} | {each for each in asked if each.startswith("xtape")}
    holds("meson.build asks for the libraries whose headers are included", asked - inside == used - {"random123", "protozero"},
          str((asked - inside) ^ used))
    wanted = {LIBRARIES[name][1] for name in used}
    given = {each for each in names(fields["xtape source"]["Build-Depends"]) if each.endswith("-dev")}
    holds("Build-Depends has the libraries of the build", given == wanted, str(given ^ wanted))
    public, _ = libraries_in("include")
    given = {each for each in names(fields["libxtape-dev"]["Depends"]) if each.endswith("-dev")}
    holds("libxtape-dev depends on what its headers include", given == {LIBRARIES[name][1] for name in public}, str(given))
    # What xtape.pc asks for in a build of shared libraries.
    needs = re.findall(r"^Requires: *(.*)$", (packaging / "xtape.pc.in").read_text(), re.M)[0].replace(" ", "").split(",")
    holds("and on what xtape.pc requires", {each for each in needs if not each.startswith("xtape")} == public, str(needs))
    setup = (source / "scripts/setup.sh").read_text()
    missing = {each for each in wanted if each not in setup and each != "libjpeg-dev"}
    holds("scripts/setup.sh installs the same", missing == set() and "libjpeg62-turbo-dev" in setup, str(missing))
    for name, each in fields.items():
        depends = re.sub(r"\([^)]*\)", "", each.get("Depends", ""))
        ours = {word for word in names(depends) if "xtape" in word}
        holds(f"{name} depends on packages that exist", ours <= set(fields), str(ours))


def recipes():
    """The recipes of packagers: their dependencies are those of the build, and the options of their builds exist."""
    conan, vcpkg = (packaging / "conan/conanfile.py").read_text(), json.loads((packaging / "vcpkg/vcpkg.json").read_text())
    conda, brew = (packaging / "conda/recipe.yaml").read_text(), (packaging / "homebrew/xtape.rb").read_text()
    host = re.search(r"^  host:\n((?:    - .*\n)*)", conda, re.M)[1]
    said = [
        set(re.findall(r'^    "([\w-]+)/\[', conan, re.M)),
        {each for each in vcpkg["dependencies"] if isinstance(each, str)},
        set(re.findall(r"- ([\w.-]+)", host)) - {"python", "numpy"},
        set(re.findall(r'depends_on "([\w-]+)"', brew)) - {"meson", "ninja", "pkgconf"},
    ]
    for column, (packager, given) in enumerate(zip(("Conan", "vcpkg", "conda", "Homebrew"), said), start=2):
        wanted = {row[column] for row in LIBRARIES.values()} - {""}
        holds(f"{packager}'s recipe has the libraries of the build", given == wanted, str(given ^ wanted))
    debian = dict(re.findall(r'^    "([\w-]+)/.*: "([\w.-]+)",$', conan, re.M))
    system = re.search(r"^FROM_SYSTEM = \[(.*)\]", conan, re.M)[1]
    wanted = {row[2]: row[1] for row in LIBRARIES.values() if row[2]}
    holds("Conan's recipe names the packages of Debian", debian == wanted and system == '"librandom123-dev", "libsentencepiece-dev"', str(debian))
    linked = subprocess.run(["pkg-config", "--libs-only-l", "sentencepiece"], check=True, capture_output=True, text=True).stdout
    holds("Conan's recipe links what sentencepiece has", all(f'"{each[2:]}"' in conan for each in linked.split()), linked)
    known = set(re.findall(r"^option\('(\w+)'", (source / "meson_options.txt").read_text(), re.M))
    known |= {"default_library", "werror", "prefer_static", "buildtype", "prefix", "cpp_link_args"}
    builds = ("static.sh", "wheel.sh", "debian/rules", "vcpkg/portfile.cmake", "conda/recipe.yaml", "homebrew/xtape.rb")
    for path in (packaging / each for each in builds):
        used = set(re.findall(r"""(?<=[\s"'])-D(\w+)=""", path.read_text()))
        holds(f"the options in {path.name} exist", used <= known, str(used - known))
    used = set(re.findall(r'"(\w+)": (?:False|"|bool)', "".join(re.findall(r"project_options \|= .*", conan))))
    holds("and those in conanfile.py", used <= known and "mpi" in used, str(used - known))
    if shutil.which("ruby"):
        holds("the formula is Ruby", subprocess.run(["ruby", "-c", packaging / "homebrew/xtape.rb"], capture_output=True).returncode == 0)
    else:
        skips("ruby is not installed")


def files():
    """Every installed file belongs to one package, and every line of a list names a file."""
    installed = json.loads(subprocess.check_output(["meson", "introspect", "--installed", build]))
    options = {each["name"]: each["value"] for each in json.loads(subprocess.check_output(["meson", "introspect", "--buildoptions", build]))}
    places = {"usr" + place.removeprefix(options["prefix"]) for place in installed.values()}
    # Debian's libraries are shared: a static one stands for the three names of a shared one.
    places |= {place[:-2] + end for place in places if place.endswith(".a") for end in (".so", ".so." + VERSION.split(".")[0], ".so." + VERSION)}
    places = {place for place in places if not place.endswith(".a")}
    lists = {path.stem: [line.split()[0] for line in path.read_text().splitlines()] for path in (packaging / "debian").glob("*.install")}
    holds("each list is that of a package", set(lists) == {name for name in control() if not name.endswith(" source")}, str(set(lists)))
    owners = {place: [(package, line) for package, lines in lists.items() for line in lines
                      if fnmatch.fnmatch(place, line) or fnmatch.fnmatch(place, line + "/*")] for place in places}
    # "*.so" matches a name that ends there only.
    wrong = {place: found for place, found in owners.items() if len(found) != 1}
    holds("every installed file is in one package", wrong == {}, str(wrong))
    used = {pair for found in owners.values() for pair in found}
    unused = {(package, line) for package, lines in lists.items() for line in lines} - used
    holds("every line of a list names installed files", unused == set(), str(unused))


def scripts():
    for path in sorted(packaging.rglob("*.sh")):
        holds(f"{path.name} is a script", subprocess.run(["bash", "-n", path]).returncode == 0)
    for path in sorted(packaging.rglob("*.py")):
        compile(path.read_text(), path, "exec")
    # In units of other sizes, names of unnamed namespaces clash. Only the ordinary ones are always compiled.
    files = [path for folder in ("packaging", "scripts", "docs/how_to") for path in (source / folder).rglob("*") if path.is_file()]
    others = [path.name for path in files if re.search(rb"unity_size=|unity=on", path.read_bytes())]
    holds("no package, script or page builds units of another size", not others and len(files) > 50, str(others))
    if not shutil.which("shellcheck"):
        return skips("shellcheck is not installed")
    paths = sorted(map(str, packaging.glob("*.sh")))
    words = ["shellcheck", "--external-sources", "--shell=bash", "--severity=warning"]
    said = subprocess.run([*words, *paths], cwd=packaging.parent, capture_output=True, text=True)
    holds("shellcheck finds nothing", said.returncode == 0, said.stdout)


def wheel():
    """A wheel of two small files: its records, and the tag that its library allows."""
    library = build / "src/c/libxtape-c.so"
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, f"xtape-{VERSION}-linux-aarch64"), Path(place, "out")
        for name in ("bin/xtape", "share/xtape/models/a.json"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(name)
        Path(place, "lib.so").write_text("library")
        subprocess.run([sys.executable, packaging / "python/wheel.py", folder, Path(place, "lib.so"), out], check=True)
        made, = out.glob("*.whl")
        holds("the wheel's name has the version and the processor", made.name == f"xtape-{VERSION}-py3-none-linux_aarch64.whl", made.name)
        with zipfile.ZipFile(made) as file:
            info = f"xtape-{VERSION}.dist-info"
            rows = [line.split(",") for line in file.read(f"{info}/RECORD").decode().splitlines()]
            holds("RECORD lists every file once", sorted(row[0] for row in rows) == sorted(file.namelist()))
            good = all("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(file.read(name)).digest()).rstrip(b"=").decode() == digest
                       and len(file.read(name)) == int(size) for name, digest, size in rows[:-1])
            holds("with its digest and size", good and rows[-1] == [f"{info}/RECORD", "", ""])
            holds("the program can be executed", file.getinfo(f"xtape-{VERSION}.data/scripts/xtape").external_attr >> 16 & 0o111 == 0o111)
            holds("its metadata", f"\nVersion: {VERSION}\n" in file.read(f"{info}/METADATA").decode())
    if not library.exists() or not shutil.which("objdump"):
        return skips("there is no libxtape-c.so, or no objdump")
    listed = re.findall(r"GLIBC_(\d+)\.(\d+)\)? +(\w+)$", subprocess.check_output(["objdump", "-T", library], text=True), re.M)
    newer = {name for major, minor, name in listed if (int(major), int(minor)) > OLD_GLIBC}
    text = (packaging / "old_glibc.c").read_text()
    provided = set(re.findall(r"^HIDDEN \w+ (\w+)", text, re.M))
    holds("old_glibc.c has the functions that the older glibc lacks", newer <= SINCE_LONG | provided, str(newer - SINCE_LONG - provided))
    made = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", packaging / "old_glibc.c"], capture_output=True, text=True)
    holds("and is C", made.returncode == 0, made.stderr)
    number = ".".join(map(str, OLD_GLIBC))
    holds("old_glibc.sh and docs/how_to/installing.md name it", f".{number}\"" in (packaging / "old_glibc.sh").read_text()
          and f"glibc {number}" in (source / "docs/how_to/installing.md").read_text())


def one_file():
    with tempfile.TemporaryDirectory() as place:
        made = subprocess.run([sys.executable, packaging / "one_file.py", build, place], capture_output=True, text=True)
        holds("one_file.py writes the core", made.returncode == 0, made.stdout + made.stderr)
        if made.returncode != 0:
            return
        text = Path(place, "xtape-core.cpp").read_text()
        included = subprocess.check_output(["g++", "-std=c++20", "-M", Path(place, "xtape-core.cpp")], text=True)
    begins = "|".join(begin for begins, *_ in LIBRARIES.values() for begin in begins.split())
    needed = re.findall(rf"/usr/include/(?:{begins})\S*|{re.escape(str(source.resolve()))}/\S+", included)
    holds("which needs no library", "xtape-core.hpp" in included and not needed, str(needed))
    own = re.sub(r"(?s)# *pragma GCC push_options.*?# *pragma GCC pop_options", "", text)
    holds("no optimisation of one source concerns later ones", "pragma GCC optimize" not in own)
    # The core has one set of kernels, which shares none.
    text = re.sub(r"(?ms)^#ifdef XTAPE_SHARED_KERNELS\n.*?^(#else|#endif)", r"\1", text)
    parts = re.split(r"^// (\S+\.cpp)\n", text, flags=re.M)
    holds("each source is in it once", len(set(parts[1::2])) == len(parts[1::2]) > 200, str(len(parts)))
    # In one unit, what two sources define in unnamed namespaces would clash.
    begins = collections.Counter(line for part in parts[2::2] for line in set(re.findall(
        r"^(?! )(?:[\w:<>, *&\[\]]+ [\w*&]+\(.*\) (?:const )?\{|struct \w+ \{|class \w+ \{|using \w+ = .*;|constexpr .* \w+ = .*;)$", part, re.M)))
    twice = [line for line, count in begins.items() if count > 1]
    holds("no two define the same", not twice and len(begins) > 1000, f"{len(begins)} {twice}")


for check in (versions, debian, recipes, files, scripts, wheel, one_file):
    check()
sys.exit(report())
