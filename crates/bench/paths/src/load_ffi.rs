//! Libraries for lua-resty-ffi.

use std::ptr;
use std::thread;

use thalweg::port::{Object, Port, Service, find};
use thalweg::wire::message;
use thalweg_resty_ffi::{
    RestyFfi, ngx_http_lua_ffi_get_req, ngx_http_lua_ffi_respond, ngx_http_lua_ffi_task_poll,
    thalweg_resty_ffi_finish, thalweg_resty_ffi_open,
};

/// An echo of 512 bytes, which a thread of the library answers.
pub fn load_ffi_call(count: u64) {
    let (mut client, mut tq) = (0, ptr::null_mut());
    // SAFETY: both are valid for writes.
    let opened = unsafe { thalweg_resty_ffi_open(64, &mut client, &mut tq, ptr::null_mut()) };
    assert_eq!(opened, 0, "there is memory for it");
    let tq = tq.addr();
    let library = thread::spawn(move || serve(ptr::without_provenance_mut(tq)));
    let Ok(Object::Client(instance)) = find(client) else {
        unreachable!("it was just opened");
    };
    let port = Port::open(64).expect("a capacity in range");
    let request = Some(&[b'x'; 512][..]);
    let layout = RestyFfi::PACKAGE.methods[0].params;
    let args = message::encode(&(request,), layout, Vec::new()).expect("it is small");
    for token in 0..count {
        let submitted = instance.submit(&port, token, 0, &args, u64::MAX);
        submitted.expect("there is room");
        port.wait(u64::MAX).expect("nobody closes it");
        assert_eq!(port.reap().expect("nobody else reaps").count(), 1);
    }
    thalweg_resty_ffi_finish(client);
    let served = library.join().expect("it does not panic");
    assert_eq!(served, count, "each call was answered once");
}

/// The thread of `bindings/lua/tests/resty_ffi/echo.c`. Returns the number of its answers.
fn serve(tq: thalweg_resty_ffi::Pointer) -> u64 {
    let mut served = 0;
    loop {
        let task = ngx_http_lua_ffi_task_poll(tq);
        if task.is_null() {
            return served;
        }
        let mut size = 0;
        // SAFETY: `size` is valid for writes. The request is valid until the answer, and a NUL follows it.
        unsafe {
            let request = ngx_http_lua_ffi_get_req(task, &mut size);
            let answer = libc::malloc(size as usize + 1);
            ptr::copy_nonoverlapping(request, answer.cast(), size as usize + 1);
            ngx_http_lua_ffi_respond(task, 0, answer.cast(), size);
        }
        served += 1;
    }
}
