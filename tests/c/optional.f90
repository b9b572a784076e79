! Calls without the optional arguments of the module xtape, and with them.
program optional
  use xtape
  implicit none
  type(c_ptr) :: tape, store, player, step, optimizer
  type(xtape_var) :: x, w, y, made(2)
  type(xtape_view) :: feed, view
  real(c_float), target :: values(3), slope
  real(c_float), pointer :: got(:)
  integer(c_int64_t), target :: sizes(2), slope_sizes(2)
  integer(c_int64_t) :: shape(10)
  integer(c_int32_t) :: dtype, rank
  integer(c_size_t) :: count
  real(c_double) :: loss, norm

  call xtape_check(xtape_tape_new(tape=tape))
  call xtape_check(xtape_store_new(store))
  x = xtape_input_of(tape, 'x', xtape_float32, [3])
  w = xtape_weight(tape, store, 'w', xtape_float32, [integer ::], '2', 0)
  call xtape_check(xtape_op(tape, xtape_c('mul'), [x, w], 2_c_size_t, results=made, capacity=1_c_size_t))
  y = xtape_of(tape, 'sum', made(1:1))
  call xtape_check(xtape_op(tape, xtape_c('sort'), [x], 1_c_size_t, xtape_c('{"axis": 0}'), made, 2_c_size_t, count))
  call holds('the number of results', count == 2)
  call xtape_check(xtape_var_type(tape, x, dtype, rank, shape))
  call holds('a type', dtype == xtape_float32 .and. rank == 1 .and. shape(1) == 3)
  call xtape_check(xtape_grad(tape, [y], 1_c_size_t, [x], 1_c_size_t, gradients=made))
  call xtape_check(xtape_jacobian(tape, y, [x], 1_c_size_t, jacobians=made(2:2)))

  values = [1, 2, 3]
  call xtape_view_of(values, xtape_float32, feed, sizes)
  call xtape_check(xtape_player_new(tape, made, 2_c_size_t, carry_count=0_c_size_t, player=player))
  call xtape_check(xtape_play(player, [x], [feed], 1_c_size_t))
  call xtape_check(xtape_player_view(player, 0_c_size_t, view))
  call c_f_pointer(view%data, got, [3])
  call holds('the gradient', all(abs(got - 2) < 1e-6))

  call xtape_check(xtape_step_new(tape, [y], 1_c_size_t, store, step=step))
  call xtape_check(xtape_step_update(step, [x], [feed], 1_c_size_t))
  call xtape_check(xtape_step_update(step, [x], [feed], 1_c_size_t, loss))
  call holds('the loss after an update', loss < 12 .and. loss > 11)
  call xtape_check(xtape_optimizer_new(store, xtape_c('{"kind": "sgd"}'), optimizer))
  slope = 3
  call xtape_view_of(slope, xtape_float32, view, slope_sizes)
  call xtape_check(xtape_optimizer_update(optimizer, [view], 1_c_size_t, 0.1_c_double, 0.0_c_double))
  call xtape_check(xtape_optimizer_update(optimizer, [view], 1_c_size_t, 0.1_c_double, 0.0_c_double, norm))
  call holds('the norm', abs(norm - 3) < 1e-12)

contains
  subroutine holds(what, so)
    character(*), intent(in) :: what
    logical, intent(in) :: so
    if (so) return
    print '(2a)', 'not as it should be: ', what
    error stop 1
  end subroutine
end program
