//! The functions for foreign libraries, called as such a library calls them. The tests in nginx are in
//! `bindings/lua/tests`.

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use thalweg::port::{Code, Completion, Incoming, Instance, Object, Port, Service, find};
use thalweg::wire::message;
use thalweg_resty_ffi::{
    Pointer, RestyFfi, ngx_http_lua_ffi_get_req, ngx_http_lua_ffi_respond,
    ngx_http_lua_ffi_task_poll, thalweg_resty_ffi_finish, thalweg_resty_ffi_open, to_handle,
};

struct Runtime {
    client: u64,
    tq: Pointer,
    port: std::sync::Arc<Port>,
}

impl Runtime {
    fn open(max_queue: u32) -> Self {
        let (mut client, mut tq) = (0, std::ptr::null_mut());
        let error = std::ptr::null_mut();
        // SAFETY: both are valid for writes.
        let code = unsafe { thalweg_resty_ffi_open(max_queue, &mut client, &mut tq, error) };
        assert_eq!(code, Code::Ok as u32);
        let port = Port::open(64).unwrap();
        Self { client, tq, port }
    }

    /// Submits a call.
    fn call(&self, request: Option<&str>) -> Result<u64, Code> {
        let request = request.map(str::as_bytes);
        let mut args = Vec::new();
        let layout = RestyFfi::PACKAGE.methods[0].params;
        message::encode_into(&(request,), layout, &mut args).unwrap();
        let submitted = self.instance().submit(&self.port, 1, 0, &args, u64::MAX);
        submitted.map_err(|failure| failure.code)
    }

    fn instance(&self) -> std::sync::Arc<Instance> {
        match find(self.client).unwrap() {
            Object::Client(instance) => instance,
            other => panic!("{other:?}"),
        }
    }

    fn poll(&self) -> Pointer {
        ngx_http_lua_ffi_task_poll(self.tq)
    }

    fn reap(&self) -> Completion {
        self.port.wait(u64::MAX).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn answer(&self) -> Option<Vec<u8>> {
        let completion = self.reap();
        assert_eq!(completion.code, Code::Ok);
        let answer = message::open(&completion.data, RestyFfi::PACKAGE.methods[0].ok).unwrap();
        answer.owned::<Option<Vec<u8>>>().unwrap()
    }
}

fn request(task: Pointer) -> Option<String> {
    let mut len = -1;
    // SAFETY: `len` is valid for writes.
    let bytes = unsafe { ngx_http_lua_ffi_get_req(task, &mut len) };
    if bytes.is_null() {
        assert_eq!(len, 0);
        return None;
    }
    // SAFETY: a NUL follows the request.
    let text = unsafe { CStr::from_ptr(bytes) }
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(text.len(), len as usize);
    Some(text)
}

fn respond(task: Pointer, rc: c_int, text: Option<&CStr>, len: c_int) {
    // SAFETY: `strdup` copies a string.
    let copy = text.map_or(std::ptr::null_mut(), |text| unsafe {
        libc::strdup(text.as_ptr())
    });
    // SAFETY: it is null or from `malloc`.
    unsafe { ngx_http_lua_ffi_respond(task, rc, copy, len) };
}

#[test]
fn request_is_read_and_answered() {
    let runtime = Runtime::open(4);
    for (sent, text, len, expected) in [
        (Some("hello"), Some(c"hello"), 5, Some("hello")),
        (Some(""), Some(c""), 0, Some("")),
        (None, None, 0, None),
        (Some("part"), Some(c"part"), 2, Some("pa")),
    ] {
        runtime.call(sent).unwrap();
        let task = runtime.poll();
        assert_eq!(request(task).as_deref(), sent);
        respond(task, 0, text, len);
        assert_eq!(runtime.answer().as_deref(), expected.map(str::as_bytes));
    }
}

#[test]
fn failure_has_its_code_and_text() {
    let runtime = Runtime::open(4);
    runtime.call(Some("fail")).unwrap();
    respond(runtime.poll(), -7, Some(c"why"), 0);
    let completion = runtime.reap();
    assert_eq!(completion.code, Code::Error);
    let layout = RestyFfi::PACKAGE.methods[0].error;
    let error = message::open(&completion.data, layout).unwrap();
    let (code, text) = error.owned::<(i32, Option<Vec<u8>>)>().unwrap();
    assert_eq!((code, text.as_deref()), (-7, Some(&b"why"[..])));
}

#[test]
fn second_answer_and_foreign_pointers_are_ignored() {
    let runtime = Runtime::open(4);
    runtime.call(Some("one")).unwrap();
    let task = runtime.poll();
    respond(task, 0, Some(c"first"), 0);
    respond(task, 0, Some(c"second"), 0);
    assert_eq!(request(task), None);
    assert_eq!(runtime.answer().as_deref(), Some(&b"first"[..]));
    assert!(runtime.port.is_empty());
    assert!(ngx_http_lua_ffi_task_poll(task).is_null());
    for pointer in [
        std::ptr::null_mut(),
        (&raw const runtime).cast_mut().cast(),
        runtime.tq,
    ] {
        assert_eq!(request(pointer), None);
        respond(pointer, 0, None, 0);
    }
}

#[test]
fn negative_length_ends_the_call() {
    let runtime = Runtime::open(4);
    runtime.call(Some("one")).unwrap();
    respond(runtime.poll(), 0, Some(c"text"), -1);
    assert_eq!(runtime.reap().code, Code::GuestLost);
}

#[test]
fn text_without_a_nul_ends_with_its_memory() {
    let runtime = Runtime::open(4);
    runtime.call(Some("one")).unwrap();
    let task = runtime.poll();
    // SAFETY: the memory is filled up to its end.
    unsafe {
        let memory = libc::malloc(1);
        let size = libc::malloc_usable_size(memory);
        libc::memset(memory, c_int::from(b'x'), size);
        ngx_http_lua_ffi_respond(task, 0, memory.cast::<c_char>(), 0);
        assert_eq!(runtime.answer(), Some(vec![b'x'; size]));
    }
}

#[test]
fn finished_runtime_has_its_tasks_and_then_none() {
    let runtime = Runtime::open(2);
    runtime.call(Some("one")).unwrap();
    runtime.call(Some("two")).unwrap();
    assert_eq!(runtime.call(Some("three")), Err(Code::Overloaded));
    thalweg_resty_ffi_finish(runtime.client);
    let first = runtime.poll();
    respond(runtime.poll(), 0, None, 0);
    assert!(runtime.poll().is_null() && runtime.poll().is_null());
    respond(first, 0, None, 0);
    assert_eq!((runtime.answer(), runtime.answer()), (None, None));
    runtime.instance().close();
    assert!(runtime.poll().is_null());
    thalweg_resty_ffi_finish(runtime.client);
}

#[test]
fn thread_that_polls_is_woken_by_each_task_and_by_the_end() {
    let runtime = Runtime::open(4);
    let tq = runtime.tq.addr();
    let server = std::thread::spawn(move || {
        let tq = std::ptr::without_provenance_mut(tq);
        std::iter::from_fn(|| Some(ngx_http_lua_ffi_task_poll(tq)).filter(|task| !task.is_null()))
            .map(|task| respond(task, 0, None, 0))
            .count()
    });
    for pause in [0, 0, 3, 0, 3] {
        std::thread::sleep(Duration::from_millis(pause)); // it sleeps or it does not
        runtime.call(None).unwrap();
        assert_eq!(runtime.answer(), None);
    }
    thalweg_resty_ffi_finish(runtime.client);
    assert_eq!(server.join().unwrap(), 5);
}

#[test]
fn lost_task_is_reported() {
    let runtime = Runtime::open(4);
    runtime.call(Some("one")).unwrap();
    let task = runtime.poll();
    drop(Incoming::take_back(to_handle(task)).unwrap());
    assert_eq!(runtime.reap().code, Code::GuestLost);
}
