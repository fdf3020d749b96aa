//! Guests that are replaced by another one while calls go on.

use super::*;

/// When a test that waits for the deadline gets there.
fn soon() -> u64 {
    clock::deadline(Duration::from_millis(50))
}

impl Host {
    /// Moves to another guest. Returns the one before.
    fn reload(&mut self, drain_deadline: u64) -> Arc<Probe> {
        let next = Arc::new(Probe::default());
        self.instance.reload_guest(next.clone(), drain_deadline);
        std::mem::replace(&mut self.probe, next)
    }
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until nothing uses a guest, so that its library could be unloaded, and returns its events.
fn events_of_unused(guest: Arc<Probe>) -> Vec<String> {
    wait_until("the guest is in use", || Arc::strong_count(&guest) == 1);
    guest.events.lock().unwrap().clone()
}

#[test]
fn new_calls_have_a_state_in_the_new_guest() {
    let mut host = Host::open();
    assert_eq!(host.call::<_, u64>(ADD, &(3u64,)), 3);
    let before = host.reload(u64::MAX);
    // The state that nobody uses ends without a call.
    assert_eq!(events_of_unused(before), ["open 1", "close 1"]);
    assert!(host.events().is_empty(), "the next call opens the state");
    assert_eq!(host.call::<_, u64>(ADD, &(4u64,)), 4);
    assert_eq!(host.call::<_, u64>(ADD, &(4u64,)), 8);
    host.instance.close();
    host.wait_for("close 1");
}

#[test]
fn client_without_a_state_moves_too() {
    let mut host = Host::open();
    let before = host.reload(u64::MAX);
    assert!(events_of_unused(before).is_empty());
    assert_eq!(host.call::<_, u64>(ADD, &(4u64,)), 4);
}

#[test]
fn begun_call_is_answered_by_its_guest() {
    let mut host = Host::open();
    let kept = host.kept();
    host.submit(KEEP, &("text",), u64::MAX);
    let call = kept.recv().unwrap();
    let before = host.reload(clock::deadline(Duration::from_secs(600)));
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1);
    guest_call_check(call).unwrap();
    let resource = GuestObject {
        kind: BOX,
        number: 99,
    };
    let handle = guest_resource_new(call, resource).unwrap();
    let ok = layouts(KEEP)[1];
    std::thread::spawn(move || guest_answer(call, Code::Ok, &written("late", ok)).unwrap())
        .join()
        .unwrap();
    assert_eq!(read::<String>(&host.reap().data, ok), "late");
    assert_eq!(before.events.lock().unwrap().len(), 2, "it has a resource");
    close_handle(handle).unwrap();
    let events = events_of_unused(before);
    assert_eq!(events, ["open 1", "keep text", "drop 1 99", "close 1"]);
}

#[test]
fn call_that_is_stopped_while_it_drains_is_reported_to_its_guest() {
    let mut host = Host::open();
    let kept = host.kept();
    let handle = host.submit(KEEP, &("text",), u64::MAX);
    kept.recv().unwrap();
    let before = host.reload(u64::MAX);
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1);
    close_handle(handle).unwrap();
    assert_eq!(host.reap().code, Code::Cancelled);
    let events = events_of_unused(before);
    assert_eq!(events, ["open 1", "keep text", "cancel 1", "close 1"]);
}

#[test]
fn calls_with_a_resource_go_to_its_guest() {
    let mut host = Host::open();
    let first = host.new_box(10);
    let oldest = host.reload(u64::MAX);
    let second = host.new_box(20);
    let older = host.reload(u64::MAX);
    let third = host.new_box(30);
    for (resource, value) in [(first, 10), (second, 20), (third, 30), (first, 10)] {
        assert_eq!(host.call::<_, u64>(GET_BOX, &(resource,)), value);
    }
    // The guest owns the first one again, and drops nothing.
    assert_eq!(host.call::<_, u64>(TAKE_BOX, &(first,)), 10);
    assert_eq!(events_of_unused(oldest), ["open 1", "close 1"]);
    close_handle(second.0).unwrap();
    assert_eq!(events_of_unused(older), ["open 1", "drop 1 0", "close 1"]);
    assert_eq!(host.call::<_, u64>(GET_BOX, &(third,)), 30);
    assert_eq!(host.failure(GET_BOX, &(first,)).0, Code::Stale);
}

#[test]
fn what_is_left_at_the_deadline_is_stale() {
    let mut host = Host::open();
    let kept = host.kept();
    let resource = host.new_box(10);
    host.submit(KEEP, &("text",), u64::MAX);
    let call = kept.recv().unwrap();
    let before = host.reload(soon());
    let completion = host.reap();
    assert_eq!(completion.code, Code::Stale);
    assert!(
        completion.message.contains("reloaded"),
        "{}",
        completion.message
    );
    let events = events_of_unused(before);
    assert_eq!(events, ["open 1", "keep text", "drop 1 0", "close 1"]);
    assert_eq!(guest_call_check(call).unwrap_err().code, Code::Stale);
    // The new guest does not get the object, which its own objects could be mistaken for.
    let own = host.new_box(20);
    assert_eq!(host.call::<_, u64>(GET_BOX, &(own,)), 20);
    let (code, why) = host.failure(GET_BOX, &(resource,));
    assert_eq!(code, Code::Stale);
    assert!(why.contains("reloaded"), "{why}");
    close_handle(resource.0).unwrap();
    assert_eq!(host.call::<_, u64>(GET_BOX, &(own,)), 20);
}

#[test]
fn each_guest_drains_until_its_own_deadline() {
    let mut host = Host::open();
    let first = host.new_box(10);
    let oldest = host.reload(u64::MAX);
    let second = host.new_box(20);
    let older = host.reload(soon());
    assert_eq!(events_of_unused(older), ["open 1", "drop 1 0", "close 1"]);
    assert_eq!(host.failure(GET_BOX, &(second,)).0, Code::Stale);
    assert_eq!(host.call::<_, u64>(GET_BOX, &(first,)), 10);
    close_handle(first.0).unwrap();
    events_of_unused(oldest);
}

#[test]
fn panic_ends_the_states_that_drain() {
    let mut host = Host::open();
    let resource = host.new_box(10);
    let before = host.reload(u64::MAX);
    assert_eq!(host.failure(MISBEHAVE, &(4u32,)).0, Code::GuestPanicked);
    assert_eq!(events_of_unused(before), ["open 1", "drop 1 0", "close 1"]);
    assert_eq!(host.failure(GET_BOX, &(resource,)).0, Code::Stale);
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1);
}

#[test]
fn closed_client_ends_the_states_that_drain() {
    let mut host = Host::open();
    let kept = host.kept();
    host.submit(KEEP, &("text",), u64::MAX);
    kept.recv().unwrap();
    let before = host.reload(u64::MAX);
    host.instance.close();
    assert_eq!(host.reap().code, Code::Cancelled);
    wait_until("the state is open", || {
        before
            .events
            .lock()
            .unwrap()
            .last()
            .is_some_and(|last| last == "close 1")
    });
    // A reload of a closed client changes nothing.
    host.reload(0);
    assert_eq!(Arc::strong_count(&before), 1);
}

struct Refuses;

impl Guest for Refuses {
    fn open(&self) -> Result<u64, Failure> {
        Err(Code::Argument.because("not today"))
    }
    fn call(&self, _: u64, _: GuestCall<'_>) {}
    fn cancel(&self, _: u64, _: u64) {}
    fn drop_resource(&self, _: u64, _: GuestObject) {}
    fn close(&self, _: u64) {}
}

#[test]
fn new_guest_that_opens_no_state_fails_only_new_calls() {
    let mut host = Host::open();
    let resource = host.new_box(10);
    host.instance.reload_guest(Arc::new(Refuses), u64::MAX);
    for _ in 0..2 {
        let (code, why) = host.failure(ADD, &(1u64,));
        assert_eq!((code, &*why), (Code::GuestLost, "not today"));
        assert_eq!(host.call::<_, u64>(GET_BOX, &(resource,)), 10);
    }
    host.reload(u64::MAX);
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1);
    assert_eq!(host.call::<_, u64>(GET_BOX, &(resource,)), 10);
}

#[test]
fn no_call_fails_while_guests_are_replaced() {
    let reloads = if cfg!(miri) { 5 } else { 200 };
    let mut host = Host::open();
    let instance = Arc::clone(&host.instance);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (instance, is_done) = (Arc::clone(&instance), &is_done);
            scope.spawn(move || {
                let user = Host {
                    probe: Arc::default(),
                    instance,
                    port: Port::open(16).unwrap(),
                };
                let mut value = 0;
                while !is_done.load(Ordering::Relaxed) {
                    value += 1;
                    let resource = user.new_box(value);
                    assert!(user.call::<_, u64>(ADD, &(1u64,)) > 0);
                    assert_eq!(user.call::<_, u64>(GET_BOX, &(resource,)), value);
                    close_handle(resource.0).unwrap();
                }
            });
        }
        let replaced: Vec<_> = (0..reloads)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(1));
                host.reload(u64::MAX)
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        for guest in replaced {
            let events = events_of_unused(guest);
            let count = |what: &str| {
                events
                    .iter()
                    .filter(|event| event.starts_with(what))
                    .count()
            };
            assert_eq!(count("open"), count("close"));
        }
    });
}

#[test]
fn difference_of_two_packages_is_described() {
    let difference = |change: &dyn Fn(&mut PackageDescription<'static>)| {
        let mut changed = description();
        change(&mut changed);
        let package = GuestPackage::of(&description()).unwrap();
        package.difference(GuestPackage::of(&changed).unwrap())
    };
    assert_eq!(difference(&|_| {}), None);
    for (change, wanted) in [
        (
            &(|it: &mut PackageDescription<'static>| it.version = "0.1.1")
                as &dyn Fn(&mut PackageDescription<'static>),
            "it is test:guest@0.1.1, not test:guest@0.1.0",
        ),
        (
            &|it| it.methods[1].types = "record{text:string}\nu64\n\n",
            "guest.echo has another place or other types",
        ),
        (
            &|it| it.methods.swap(0, 1),
            "guest.add has another place or other types",
        ),
        (
            &|it| {
                it.methods.pop();
            },
            "it has more or fewer functions",
        ),
        (
            &|it| it.methods[0].options.timeout_ns = 1,
            "its policies are others",
        ),
        (
            &|it| it.limits.max_queued_calls = 1,
            "its policies are others",
        ),
    ] {
        assert_eq!(difference(change).as_deref(), Some(wanted));
    }
}
