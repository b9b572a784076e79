! xtape in Fortran: the functions of xtape.h, and a few that are shorter to call. docs/how_to/fortran.md is the page for users.
!
! Texts end with c_null_char; xtape_c('sin') adds it. Arguments that may be NULL in C are optional: leave them out, and name
! those that follow. For handles, functions and contexts, pass c_null_ptr or c_null_funptr.
module xtape
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int32_t), parameter :: xtape_ok = 0
  integer(c_int32_t), parameter :: xtape_float32 = 0, xtape_float64 = 1, xtape_bfloat16 = 2, xtape_float16 = 3
  integer(c_int32_t), parameter :: xtape_int32 = 4, xtape_int64 = 5, xtape_int8 = 6, xtape_bool = 7

  ! A value on a tape.
  type, bind(c) :: xtape_var
    integer(c_int32_t) :: tape = 0, serial = 0, node = 0, output = 0
  end type

  ! Elements in memory. xtape_view_of fills it.
  type, bind(c) :: xtape_view
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: dtype = 0, rank = 0
    type(c_ptr) :: shape = c_null_ptr, strides = c_null_ptr
  end type

  interface
    ! What follows is written by bindings.py.
    function xtape_version() bind(c) result(answer)
      import; type(c_ptr) :: answer
    end function
    function xtape_last_error() bind(c) result(answer)
      import; type(c_ptr) :: answer
    end function
    subroutine xtape_at(file, line) bind(c)
      import; character(c_char), intent(in) :: file(*); integer(c_int32_t), value :: line
    end subroutine
    function xtape_release(handle) bind(c) result(answer)
      import; type(c_ptr), value :: handle; integer(c_int32_t) :: answer
    end function
    function xtape_describe(handle, json) bind(c) result(answer)
      import; type(c_ptr), value :: handle; type(c_ptr), intent(out) :: json; integer(c_int32_t) :: answer
    end function
    function xtape_op_table(json) bind(c) result(answer)
      import; type(c_ptr), intent(out) :: json; integer(c_int32_t) :: answer
    end function
    function xtape_array_new(values, array) bind(c) result(answer)
      import; type(xtape_view), intent(in) :: values(*); type(c_ptr), intent(out) :: array
      integer(c_int32_t) :: answer
    end function
    function xtape_array_view(array, view) bind(c) result(answer)
      import; type(c_ptr), value :: array; type(xtape_view), intent(inout) :: view; integer(c_int32_t) :: answer
    end function
    function xtape_array_from_dlpack(managed, versioned, array) bind(c) result(answer)
      import; type(c_ptr), value :: managed; integer(c_int32_t), value :: versioned
      type(c_ptr), intent(out) :: array; integer(c_int32_t) :: answer
    end function
    function xtape_array_to_dlpack(array, versioned, managed) bind(c) result(answer)
      import; type(c_ptr), value :: array; integer(c_int32_t), value :: versioned
      type(c_ptr), intent(out) :: managed; integer(c_int32_t) :: answer
    end function
    function xtape_store_new(store) bind(c) result(answer)
      import; type(c_ptr), intent(out) :: store; integer(c_int32_t) :: answer
    end function
    function xtape_store_set(store, name, array) bind(c) result(answer)
      import; type(c_ptr), value :: store; character(c_char), intent(in) :: name(*); type(c_ptr), value :: array
      integer(c_int32_t) :: answer
    end function
    function xtape_store_get(store, name, array) bind(c) result(answer)
      import; type(c_ptr), value :: store; character(c_char), intent(in) :: name(*)
      type(c_ptr), intent(out) :: array; integer(c_int32_t) :: answer
    end function
    function xtape_store_name(store, index, name) bind(c) result(answer)
      import; type(c_ptr), value :: store; integer(c_size_t), value :: index; type(c_ptr), intent(out) :: name
      integer(c_int32_t) :: answer
    end function
    function xtape_store_initialise(store, name, dtype, rank, shape, initialiser, seed) bind(c) result(answer)
      import; type(c_ptr), value :: store; character(c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: dtype; integer(c_int32_t), value :: rank
      integer(c_int64_t), intent(in) :: shape(*); character(c_char), intent(in) :: initialiser(*)
      integer(c_int64_t), value :: seed; integer(c_int32_t) :: answer
    end function
    function xtape_store_load(path, store) bind(c) result(answer)
      import; character(c_char), intent(in) :: path(*); type(c_ptr), intent(out) :: store
      integer(c_int32_t) :: answer
    end function
    function xtape_store_save(store, path) bind(c) result(answer)
      import; type(c_ptr), value :: store; character(c_char), intent(in) :: path(*); integer(c_int32_t) :: answer
    end function
    function xtape_tape_new(options, tape) bind(c) result(answer)
      import; character(c_char), intent(in), optional :: options(*); type(c_ptr), intent(out) :: tape
      integer(c_int32_t) :: answer
    end function
    function xtape_tape_load(path, weights, tape) bind(c) result(answer)
      import; character(c_char), intent(in) :: path(*); type(c_ptr), value :: weights
      type(c_ptr), intent(out) :: tape; integer(c_int32_t) :: answer
    end function
    function xtape_tape_save(tape, path, names, outputs, count) bind(c) result(answer)
      import; type(c_ptr), value :: tape; character(c_char), intent(in) :: path(*); type(c_ptr), value :: names
      type(xtape_var), intent(in) :: outputs(*); integer(c_size_t), value :: count; integer(c_int32_t) :: answer
    end function
    function xtape_var_named(tape, name, var) bind(c) result(answer)
      import; type(c_ptr), value :: tape; character(c_char), intent(in) :: name(*)
      type(xtape_var), intent(inout) :: var; integer(c_int32_t) :: answer
    end function
    function xtape_var_type(tape, var, dtype, rank, shape) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), value :: var; integer(c_int32_t), intent(out) :: dtype
      integer(c_int32_t), intent(out) :: rank; integer(c_int64_t), intent(out) :: shape(*)
      integer(c_int32_t) :: answer
    end function
    function xtape_input(tape, name, dtype, rank, shape, var) bind(c) result(answer)
      import; type(c_ptr), value :: tape; character(c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: dtype; integer(c_int32_t), value :: rank
      integer(c_int64_t), intent(in) :: shape(*); type(xtape_var), intent(inout) :: var; integer(c_int32_t) :: answer
    end function
    function xtape_parameter(tape, store, name, var) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(c_ptr), value :: store; character(c_char), intent(in) :: name(*)
      type(xtape_var), intent(inout) :: var; integer(c_int32_t) :: answer
    end function
    function xtape_constant(tape, values, var) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_view), intent(in) :: values(*)
      type(xtape_var), intent(inout) :: var; integer(c_int32_t) :: answer
    end function
    function xtape_number(value) bind(c) result(answer)
      import; real(c_double), value :: value; type(xtape_var) :: answer
    end function
    function xtape_integer(value) bind(c) result(answer)
      import; integer(c_int64_t), value :: value; type(xtape_var) :: answer
    end function
    function xtape_op(tape, name, operands, operand_count, attributes, results, capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: tape; character(c_char), intent(in) :: name(*)
      type(xtape_var), intent(in) :: operands(*); integer(c_size_t), value :: operand_count
      character(c_char), intent(in), optional :: attributes(*); type(xtape_var), intent(inout) :: results(*)
      integer(c_size_t), value :: capacity; integer(c_size_t), intent(out), optional :: count
      integer(c_int32_t) :: answer
    end function
    function xtape_grad(tape, outputs, output_count, inputs, input_count, cotangents, options, gradients) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), intent(in) :: outputs(*)
      integer(c_size_t), value :: output_count; type(xtape_var), intent(in) :: inputs(*)
      integer(c_size_t), value :: input_count; type(xtape_var), intent(in), optional :: cotangents(*)
      character(c_char), intent(in), optional :: options(*); type(xtape_var), intent(inout) :: gradients(*)
      integer(c_int32_t) :: answer
    end function
    function xtape_jvp(tape, outputs, output_count, inputs, input_count, tangents, results) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), intent(in) :: outputs(*)
      integer(c_size_t), value :: output_count; type(xtape_var), intent(in) :: inputs(*)
      integer(c_size_t), value :: input_count; type(xtape_var), intent(in) :: tangents(*)
      type(xtape_var), intent(inout) :: results(*); integer(c_int32_t) :: answer
    end function
    function xtape_jacobian(tape, output, inputs, input_count, options, jacobians) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), value :: output; type(xtape_var), intent(in) :: inputs(*)
      integer(c_size_t), value :: input_count; character(c_char), intent(in), optional :: options(*)
      type(xtape_var), intent(inout) :: jacobians(*); integer(c_int32_t) :: answer
    end function
    function xtape_hessian(tape, output, input, options, hessian) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), value :: output; type(xtape_var), value :: input
      character(c_char), intent(in), optional :: options(*); type(xtape_var), intent(inout) :: hessian
      integer(c_int32_t) :: answer
    end function
    function xtape_vmap(tape, function, context, inputs, input_count, options, results, capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(c_funptr), value :: function; type(c_ptr), value :: context
      type(xtape_var), intent(in) :: inputs(*); integer(c_size_t), value :: input_count
      character(c_char), intent(in), optional :: options(*); type(xtape_var), intent(inout) :: results(*)
      integer(c_size_t), value :: capacity; integer(c_size_t), intent(out), optional :: count
      integer(c_int32_t) :: answer
    end function
    function xtape_scan(tape, cell, context, inputs, input_count, states, state_count, options, results, &
        capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(c_funptr), value :: cell; type(c_ptr), value :: context
      type(xtape_var), intent(in) :: inputs(*); integer(c_size_t), value :: input_count
      type(xtape_var), intent(in) :: states(*); integer(c_size_t), value :: state_count
      character(c_char), intent(in), optional :: options(*); type(xtape_var), intent(inout) :: results(*)
      integer(c_size_t), value :: capacity; integer(c_size_t), intent(out), optional :: count
      integer(c_int32_t) :: answer
    end function
    function xtape_checkpoint(tape, function, context, inputs, input_count, results, capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(c_funptr), value :: function; type(c_ptr), value :: context
      type(xtape_var), intent(in) :: inputs(*); integer(c_size_t), value :: input_count
      type(xtape_var), intent(inout) :: results(*); integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out), optional :: count; integer(c_int32_t) :: answer
    end function
    function xtape_player_new(tape, outputs, output_count, carries, carry_count, options, player) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), intent(in) :: outputs(*)
      integer(c_size_t), value :: output_count; type(xtape_var), intent(in), optional :: carries(*)
      integer(c_size_t), value :: carry_count; character(c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: player; integer(c_int32_t) :: answer
    end function
    function xtape_play(player, inputs, values, count) bind(c) result(answer)
      import; type(c_ptr), value :: player; type(xtape_var), intent(in) :: inputs(*)
      type(xtape_view), intent(in) :: values(*); integer(c_size_t), value :: count; integer(c_int32_t) :: answer
    end function
    function xtape_player_view(player, index, view) bind(c) result(answer)
      import; type(c_ptr), value :: player; integer(c_size_t), value :: index
      type(xtape_view), intent(inout) :: view; integer(c_int32_t) :: answer
    end function
    function xtape_player_array(player, index, array) bind(c) result(answer)
      import; type(c_ptr), value :: player; integer(c_size_t), value :: index; type(c_ptr), intent(out) :: array
      integer(c_int32_t) :: answer
    end function
    function xtape_player_carried(player, input, view) bind(c) result(answer)
      import; type(c_ptr), value :: player; type(xtape_var), value :: input; type(xtape_view), intent(inout) :: view
      integer(c_int32_t) :: answer
    end function
    function xtape_player_set_step(player, random_step) bind(c) result(answer)
      import; type(c_ptr), value :: player; integer(c_int64_t), value :: random_step; integer(c_int32_t) :: answer
    end function
    function xtape_step_new(tape, results, result_count, weights, options, step) bind(c) result(answer)
      import; type(c_ptr), value :: tape; type(xtape_var), intent(in) :: results(*)
      integer(c_size_t), value :: result_count; type(c_ptr), value :: weights
      character(c_char), intent(in), optional :: options(*); type(c_ptr), intent(out) :: step
      integer(c_int32_t) :: answer
    end function
    function xtape_step_update(step, inputs, values, count, loss) bind(c) result(answer)
      import; type(c_ptr), value :: step; type(xtape_var), intent(in) :: inputs(*)
      type(xtape_view), intent(in) :: values(*); integer(c_size_t), value :: count
      real(c_double), intent(out), optional :: loss; integer(c_int32_t) :: answer
    end function
    function xtape_step_view(step, result, view) bind(c) result(answer)
      import; type(c_ptr), value :: step; integer(c_size_t), value :: result; type(xtape_view), intent(inout) :: view
      integer(c_int32_t) :: answer
    end function
    function xtape_optimizer_new(weights, options, optimizer) bind(c) result(answer)
      import; type(c_ptr), value :: weights; character(c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: optimizer; integer(c_int32_t) :: answer
    end function
    function xtape_optimizer_update(optimizer, gradients, count, rate, clip, norm) bind(c) result(answer)
      import; type(c_ptr), value :: optimizer; type(xtape_view), intent(in) :: gradients(*)
      integer(c_size_t), value :: count; real(c_double), value :: rate; real(c_double), value :: clip
      real(c_double), intent(out), optional :: norm; integer(c_int32_t) :: answer
    end function
    function xtape_state(handle, state) bind(c) result(answer)
      import; type(c_ptr), value :: handle; type(c_ptr), intent(out) :: state; integer(c_int32_t) :: answer
    end function
    function xtape_model_open(source, options, model) bind(c) result(answer)
      import; character(c_char), intent(in) :: source(*); character(c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: model; integer(c_int32_t) :: answer
    end function
    function xtape_weights(model, weights) bind(c) result(answer)
      import; type(c_ptr), value :: model; type(c_ptr), intent(out) :: weights; integer(c_int32_t) :: answer
    end function
    function xtape_model_inputs(model, tape, function, sizes, inputs, capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: model; type(c_ptr), value :: tape
      character(c_char), intent(in), optional :: function(*); character(c_char), intent(in), optional :: sizes(*)
      type(xtape_var), intent(inout) :: inputs(*); integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out), optional :: count; integer(c_int32_t) :: answer
    end function
    function xtape_model_record(model, tape, function, inputs, input_count, results, capacity, count) bind(c) result(answer)
      import; type(c_ptr), value :: model; type(c_ptr), value :: tape
      character(c_char), intent(in), optional :: function(*); type(xtape_var), intent(in) :: inputs(*)
      integer(c_size_t), value :: input_count; type(xtape_var), intent(inout) :: results(*)
      integer(c_size_t), value :: capacity; integer(c_size_t), intent(out), optional :: count
      integer(c_int32_t) :: answer
    end function
    function xtape_model_play(model, function, mode, names, values, count, results) bind(c) result(answer)
      import; type(c_ptr), value :: model; character(c_char), intent(in), optional :: function(*)
      character(c_char), intent(in), optional :: mode(*); type(c_ptr), value :: names
      type(xtape_view), intent(in) :: values(*); integer(c_size_t), value :: count
      type(c_ptr), intent(out) :: results; integer(c_int32_t) :: answer
    end function
    function xtape_model_load_weights(model, path) bind(c) result(answer)
      import; type(c_ptr), value :: model; character(c_char), intent(in) :: path(*); integer(c_int32_t) :: answer
    end function
    function xtape_model_save(model, path, options) bind(c) result(answer)
      import; type(c_ptr), value :: model; character(c_char), intent(in) :: path(*)
      character(c_char), intent(in), optional :: options(*); integer(c_int32_t) :: answer
    end function
    function xtape_generate(model, prompt, options, each, context) bind(c) result(answer)
      import; type(c_ptr), value :: model; character(c_char), intent(in), optional :: prompt(*)
      character(c_char), intent(in), optional :: options(*); type(c_funptr), value :: each
      type(c_ptr), value :: context; integer(c_int32_t) :: answer
    end function
    function xtape_onnx_save(tape, path, names, outputs, count, options) bind(c) result(answer)
      import; type(c_ptr), value :: tape; character(c_char), intent(in) :: path(*); type(c_ptr), value :: names
      type(xtape_var), intent(in) :: outputs(*); integer(c_size_t), value :: count
      character(c_char), intent(in), optional :: options(*); integer(c_int32_t) :: answer
    end function
    function xtape_run_new(recipe, settings, folder, run) bind(c) result(answer)
      import; character(c_char), intent(in) :: recipe(*); character(c_char), intent(in), optional :: settings(*)
      character(c_char), intent(in) :: folder(*); type(c_ptr), intent(out) :: run; integer(c_int32_t) :: answer
    end function
    function xtape_train(run, each, context, finished) bind(c) result(answer)
      import; type(c_ptr), value :: run; type(c_funptr), value :: each; type(c_ptr), value :: context
      integer(c_int32_t), intent(out), optional :: finished; integer(c_int32_t) :: answer
    end function
    function xtape_evaluate(run, json) bind(c) result(answer)
      import; type(c_ptr), value :: run; type(c_ptr), intent(out) :: json; integer(c_int32_t) :: answer
    end function
    ! End of what bindings.py writes.
  end interface

contains

  ! A text for C.
  function xtape_c(text) result(made)
    character(*), intent(in) :: text
    character(c_char) :: made(len_trim(text) + 1)
    integer :: i
    do i = 1, len_trim(text)
      made(i) = text(i:i)
    end do
    made(size(made)) = c_null_char
  end function

  ! A text of C.
  function xtape_text(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(c_char), pointer :: letters(:)
    integer :: length, i
    call c_f_pointer(address, letters, [huge(1)])
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function

  ! Ends the program with the text of the error, unless the status is xtape_ok.
  subroutine xtape_check(status)
    integer(c_int32_t), intent(in) :: status
    if (status == xtape_ok) return
    print '(a)', xtape_text(xtape_last_error())
    error stop 1
  end subroutine

  ! A view of an array, which must be contiguous and outlive the view. Index (i, j) of Fortran, less 1, is that of xtape.
  ! `sizes` has room for twice the rank, and must outlive the view, too.
  subroutine xtape_view_of(array, dtype, view, sizes)
    type(*), intent(in), target, contiguous :: array(..)
    integer(c_int32_t), intent(in) :: dtype
    type(xtape_view), intent(out) :: view
    integer(c_int64_t), intent(out), target :: sizes(:)
    integer :: axis, axes
    axes = rank(array)
    do axis = 1, axes
      sizes(axis) = size(array, axis, c_int64_t)
      sizes(axes + axis) = product(sizes(1:axis - 1))
    end do
    view = xtape_view(c_loc(array), dtype, axes, c_null_ptr, c_null_ptr)
    if (axes > 0) view%shape = c_loc(sizes(1))
    if (axes > 0) view%strides = c_loc(sizes(axes + 1))
  end subroutine

  ! Records an op with one result.
  function xtape_of(tape, name, operands, attributes) result(made)
    type(c_ptr), intent(in) :: tape
    character(*), intent(in) :: name
    type(xtape_var), intent(in) :: operands(:)
    character(*), intent(in), optional :: attributes
    type(xtape_var) :: made, results(1)
    character(:), allocatable :: given
    given = '{}'
    if (present(attributes)) given = attributes
    call xtape_check(xtape_op(tape, xtape_c(name), operands, size(operands, kind=c_size_t), xtape_c(given), results, &
      1_c_size_t))
    made = results(1)
  end function

  ! Records an input.
  function xtape_input_of(tape, name, dtype, shape) result(var)
    type(c_ptr), intent(in) :: tape
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: dtype
    integer, intent(in) :: shape(:)
    type(xtape_var) :: var
    call xtape_check(xtape_input(tape, xtape_c(name), dtype, size(shape, kind=c_int32_t), int(shape, c_int64_t), var))
  end function

  ! Makes or finds an array of a store, and records it as a parameter.
  function xtape_weight(tape, store, name, dtype, shape, initialiser, seed) result(var)
    type(c_ptr), intent(in) :: tape, store
    character(*), intent(in) :: name, initialiser
    integer(c_int32_t), intent(in) :: dtype
    integer, intent(in) :: shape(:), seed
    type(xtape_var) :: var
    call xtape_check(xtape_store_initialise(store, xtape_c(name), dtype, size(shape, kind=c_int32_t), &
      int(shape, c_int64_t), xtape_c(initialiser), int(seed, c_int64_t)))
    call xtape_check(xtape_parameter(tape, store, xtape_c(name), var))
  end function
end module
