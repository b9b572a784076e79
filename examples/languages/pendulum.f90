! A simulation of a pendulum with friction. While it runs, a network learns its acceleration from what it sees.
! gfortran xtape.f90 pendulum.f90 $(pkg-config --libs xtape-c) -o pendulum
program pendulum
  use xtape
  implicit none
  integer, parameter :: rows = 16, hidden = 32, steps = 4000
  real(c_double), parameter :: dt = 0.02_c_double
  type(c_ptr) :: tape, weights, step
  type(xtape_var) :: inputs(2), network, loss
  type(xtape_view) :: feeds(2)
  real(c_double), target :: seen(rows, 2), acceleration(rows)
  integer(c_int64_t), target :: sizes(4, 2)
  real(c_double) :: angle, speed, force, error, sum_of_errors, first
  integer :: i, row

  ! The network: (angle, speed) -> acceleration. It is recorded once; its loss and gradients are compiled once.
  call xtape_check(xtape_tape_new(xtape_c('{"dtype": "float64"}'), tape))
  call xtape_check(xtape_store_new(weights))
  inputs(1) = xtape_input_of(tape, 'seen', xtape_float64, [rows, 2])
  inputs(2) = xtape_input_of(tape, 'acceleration', xtape_float64, [rows])
  network = xtape_of(tape, 'matmul', [inputs(1), matrix('first', [2, hidden])])
  network = xtape_of(tape, 'tanh', [xtape_of(tape, 'add', [network, matrix('shift', [1, hidden])])])
  network = xtape_of(tape, 'matmul', [network, matrix('last', [hidden])])
  loss = xtape_of(tape, 'mse_loss', [network, inputs(2)])
  call xtape_check(xtape_step_new(tape, [loss], 1_c_size_t, weights, &
    xtape_c('{"optimizer": {"kind": "adam"}, "schedule": 0.01, "threads": 1}'), step))
  call xtape_view_of(seen, xtape_float64, feeds(1), sizes(:, 1))
  call xtape_view_of(acceleration, xtape_float64, feeds(2), sizes(:, 2))

  angle = 2
  speed = 0
  sum_of_errors = 0
  do i = 1, steps
    force = -9.81_c_double * sin(angle) - 0.1_c_double * speed + 3 * sin(0.7_c_double * i * dt)
    row = mod(i, rows) + 1
    seen(row, :) = [angle, speed]
    acceleration(row) = force - 3 * sin(0.7_c_double * i * dt)
    speed = speed + dt * force
    angle = angle + dt * speed
    if (i < rows) cycle  ! the network learns from the last steps, while the simulation goes on
    call xtape_check(xtape_step_update(step, inputs, feeds, 2_c_size_t, error))
    sum_of_errors = sum_of_errors + error
    if (mod(i, 1000) /= 0) cycle
    print '(a,i5,a,f8.4)', 'step', i, '  mean squared error', sum_of_errors / 1000
    if (i == 1000) first = sum_of_errors
    if (i == steps .and. sum_of_errors > first / 4) error stop 1
    sum_of_errors = 0
  end do
  call xtape_check(xtape_release(step))

contains
  function matrix(name, shape) result(var)
    character(*), intent(in) :: name
    integer, intent(in) :: shape(:)
    type(xtape_var) :: var
    var = xtape_weight(tape, weights, name, xtape_float64, shape, '{"normal": {"std": 0.3}}', 1)
  end function
end program
