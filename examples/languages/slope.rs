// The slope of sin(x) x^2, by the C interface.
// rustc --edition 2021 slope.rs -L PREFIX/lib -l xtape-c
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::null;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Var { tape: u32, serial: u32, node: i32, output: i32 }
#[repr(C)]
struct View { data: *const c_void, dtype: i32, rank: i32, shape: *const i64, strides: *const i64 }

extern "C" {
    fn xtape_last_error() -> *const c_char;
    fn xtape_tape_new(options: *const c_char, tape: *mut *mut c_void) -> i32;
    fn xtape_input(tape: *mut c_void, name: *const c_char, dtype: i32, rank: i32, shape: *const i64, var: *mut Var) -> i32;
    fn xtape_op(tape: *mut c_void, name: *const c_char, operands: *const Var, count: usize, attributes: *const c_char,
                results: *mut Var, capacity: usize, result_count: *mut usize) -> i32;
    fn xtape_grad(tape: *mut c_void, outputs: *const Var, output_count: usize, inputs: *const Var, input_count: usize,
                  cotangents: *const Var, options: *const c_char, gradients: *mut Var) -> i32;
    fn xtape_player_new(tape: *mut c_void, outputs: *const Var, count: usize, carries: *const Var, carry_count: usize,
                        options: *const c_char, player: *mut *mut c_void) -> i32;
    fn xtape_play(player: *mut c_void, inputs: *const Var, values: *const View, count: usize) -> i32;
    fn xtape_player_view(player: *mut c_void, index: usize, view: *mut View) -> i32;
    fn xtape_release(handle: *mut c_void) -> i32;
}

fn check(status: i32) {
    if status != 0 { panic!("{}", unsafe { CStr::from_ptr(xtape_last_error()) }.to_string_lossy()) }
}
fn op(tape: *mut c_void, name: &str, operands: &[Var]) -> Var {
    let (name, mut y) = (CString::new(name).unwrap(), Var::default());
    check(unsafe { xtape_op(tape, name.as_ptr(), operands.as_ptr(), operands.len(), null(), &mut y, 1, std::ptr::null_mut()) });
    y
}

fn main() {
    let (mut tape, mut player, mut x, mut slope) = (std::ptr::null_mut(), std::ptr::null_mut(), Var::default(), Var::default());
    unsafe {
        check(xtape_tape_new(null(), &mut tape));
        check(xtape_input(tape, c"x".as_ptr(), 1, 0, null(), &mut x)); // 1: float64
        let y = op(tape, "mul", &[op(tape, "sin", &[x]), op(tape, "square", &[x])]);
        check(xtape_grad(tape, &y, 1, &x, 1, null(), null(), &mut slope));
        check(xtape_player_new(tape, &slope, 1, null(), 0, null(), &mut player));
        let at = 2.0f64;
        let mut view = View { data: &at as *const f64 as *const c_void, dtype: 1, rank: 0, shape: null(), strides: null() };
        check(xtape_play(player, &x, &view, 1));
        check(xtape_player_view(player, 0, &mut view));
        let found = *(view.data as *const f64);
        println!("slope at 2: {found}");
        assert!((found - (2.0f64.cos() * 4.0 + 2.0f64.sin() * 4.0)).abs() < 1e-12);
        check(xtape_release(player) | xtape_release(tape));
    }
}
