//! W3C trace context: its headers, by the rules of the recommendation, and how it propagates from
//! actor to actor.

use std::sync::mpsc::channel as std_channel;
use std::time::Duration;

use proptest::prelude::*;
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::trace::{
    self, SpanId, TraceContext, TraceError, TraceId, TraceState, TraceStateError, Traced, in_trace,
    with_trace,
};
use thalweg_runtime::{
    Actor, ActorRef, Config, Context, Handler, Runtime, block_on, cancel, channel, run, sleep,
    spawn, start, yield_now,
};

/// The recommendation's own example.
const SAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn sample() -> TraceContext {
    TraceContext::parse(SAMPLE).expect("it is good")
}

#[test]
fn header_round_trips() {
    let context = sample();
    assert_eq!(
        context.trace_id().to_string(),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
    assert!(context.is_sampled() && context.parent().is_none());
    assert_eq!(context.traceparent(), SAMPLE);
    let dropped = TraceContext::parse(SAMPLE.replace("-01", "-00")).expect("it is good");
    assert!(!dropped.is_sampled());
}

#[test]
fn invalid_header_is_refused_with_its_reason() {
    let zeros = |count: usize| "0".repeat(count);
    for (bad, why) in [
        (String::new(), TraceError::Length(0)),
        (SAMPLE[..54].into(), TraceError::Length(54)),
        (format!("{SAMPLE}-extra"), TraceError::Length(61)),
        (format!("{SAMPLE} "), TraceError::Length(56)),
        (SAMPLE.replacen("00", "ff", 1), TraceError::Version),
        (SAMPLE.replacen("00", "0g", 1), TraceError::Digit(1)),
        (SAMPLE.replace("0af", "0AF"), TraceError::Digit(4)),
        (SAMPLE.replace("b7ad", "b7AD"), TraceError::Digit(38)),
        (SAMPLE.replace("-01", "-0x"), TraceError::Digit(54)),
        (SAMPLE.replace("-01", "_01"), TraceError::Dash(52)),
        (SAMPLE.replace("-b7", "-b-"), TraceError::Digit(37)),
        (
            format!("00-{}-b7ad6b7169203331-01", zeros(32)),
            TraceError::NoTrace,
        ),
        (
            format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", zeros(16)),
            TraceError::NoSpan,
        ),
    ] {
        assert_eq!(TraceContext::parse(&bad), Err(why), "{bad}");
    }
    assert_eq!(TraceId::from_bytes([0; 16]), None);
    assert_eq!(SpanId::from_bytes([0; 8]), None);
}

#[test]
fn later_version_is_read_and_sent_as_version_00() {
    for later in [
        SAMPLE.replacen("00", "01", 1),
        SAMPLE.replacen("00", "cc", 1) + "-what-the-future-will-be-like",
        SAMPLE.replacen("00", "fe", 1) + "-",
    ] {
        let context = TraceContext::parse(&later).expect(&later);
        assert_eq!(context.traceparent(), SAMPLE, "{later}");
    }
    let glued = SAMPLE.replacen("00", "01", 1) + ".x";
    assert_eq!(TraceContext::parse(glued), Err(TraceError::Dash(55)));
}

#[test]
fn unknown_flags_are_not_passed_on() {
    let all = TraceContext::parse(SAMPLE.replace("-01", "-ff")).expect("it is good");
    assert!(all.is_sampled());
    assert!(all.traceparent().ends_with("-03"), "{all}");
}

#[test]
fn new_trace_and_child_have_their_own_ids() {
    let (one, other) = (TraceContext::new(true), TraceContext::new(false));
    assert_ne!(one.trace_id(), other.trace_id());
    assert!(one.is_sampled() && !other.is_sampled());
    let child = one.child();
    assert_eq!(child.trace_id(), one.trace_id());
    assert_eq!(child.parent(), Some(one.span_id()));
    let mut spans: Vec<_> = (0..10_000)
        .map(|_| one.child().span_id().to_bytes())
        .collect();
    spans.sort_unstable();
    spans.dedup();
    assert_eq!(spans.len(), 10_000);
    let elsewhere = std::thread::spawn(|| TraceContext::new(true).trace_id());
    assert_ne!(
        elsewhere.join().expect("it ends"),
        TraceContext::new(true).trace_id()
    );
}

#[test]
fn tracestate_keeps_its_order_and_drops_empty_members() {
    let state = TraceState::parse("rojo=00f067aa0ba902b7 ,\t, congo=t61rcWkgMzE,").expect("good");
    assert_eq!(state.to_string(), "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    assert_eq!(state.get("congo"), Some("t61rcWkgMzE"));
    assert_eq!(state.members().count(), 2);
    assert!(TraceState::parse("").expect("none is good").is_empty());
    let tenant = TraceState::parse("fw529a3039@dt= a b").expect("good");
    assert_eq!(tenant.get("fw529a3039@dt"), Some(" a b"));
}

#[test]
fn invalid_tracestate_is_refused_with_its_index() {
    let long = "a".repeat(257);
    for (bad, place) in [
        ("foo", 0),
        ("foo=", 0),
        ("=1", 0),
        ("foo =1", 0),
        ("a=1,Foo=1", 1),
        ("a=1,foo@=1", 1),
        ("a=1,@foo=1", 1),
        ("a@b@c=1", 0),
        ("a=1,,1foo=1", 2),
        ("foo.bar=1", 0),
        ("foo=a=b", 0),
        ("foo=\u{e9}", 0),
        ("foo=a\tb", 0),
        (&format!("{long}=1"), 0),
        (&format!("a={long}"), 0),
        (&format!("a@{}=1", "b".repeat(15)), 0),
    ] {
        assert_eq!(
            TraceState::parse(bad),
            Err(TraceStateError::Member(place)),
            "{bad}"
        );
    }
    assert_eq!(
        TraceState::parse("a=1,b=2,a=3"),
        Err(TraceStateError::Duplicate(2))
    );
    assert_eq!(
        TraceState::parse(b"a=\xff"),
        Err(TraceStateError::Member(0))
    );
}

#[test]
fn tracestate_has_at_most_32_members_and_512_characters() {
    let members = |count: usize| (0..count).map(|n| format!("k{n}=1")).collect::<Vec<_>>();
    let full = TraceState::parse(members(32).join(",")).expect("good");
    assert_eq!(full.members().count(), 32);
    assert_eq!(
        TraceState::parse(members(33).join(",")),
        Err(TraceStateError::TooMany)
    );
    let more = full.with("new", "2").expect("good");
    assert_eq!(more.members().next(), Some(("new", "2")));
    assert_eq!((more.members().count(), more.get("k31")), (32, None));

    let large = format!("large={}", "x".repeat(200));
    let small: Vec<_> = (0..4).map(|n| format!("s{n}={}", "y".repeat(90))).collect();
    let long = format!("{},{large},{}", small[..2].join(","), small[2..].join(","));
    let kept = TraceState::parse(&long).expect("good");
    assert_eq!(
        kept.to_string(),
        small.join(","),
        "the large one goes first"
    );
    let six: Vec<_> = (0..6).map(|n| format!("s{n}={}", "y".repeat(90))).collect();
    let kept = TraceState::parse(six.join(",")).expect("good");
    assert_eq!(kept.to_string(), six[..5].join(","), "then the last");
}

#[test]
fn invalid_tracestate_keeps_the_traceparent() {
    let none: Option<&str> = None;
    assert_eq!(TraceContext::from_headers(SAMPLE, none), Ok(sample()));
    assert_eq!(
        TraceContext::from_headers(SAMPLE, Some("a=1,a=2")),
        Ok(sample())
    );
    assert!(TraceContext::from_headers("", Some("a=1")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 500 }))]

    #[test]
    fn written_context_is_read_back_equal(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), sampled: bool) {
        if let (Some(trace), Some(span)) = (TraceId::from_bytes(trace), SpanId::from_bytes(span)) {
            let context = TraceContext::from_ids(trace, span, sampled);
            let text = context.traceparent();
            prop_assert_eq!(text.len(), 55);
            prop_assert_eq!(text.to_ascii_lowercase(), text.clone());
            prop_assert_eq!(TraceContext::parse(&text), Ok(context));
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(context) = TraceContext::parse(&bytes) {
            let text = context.traceparent();
            prop_assert_eq!(&text.as_bytes()[2..52], &bytes[2..52]);
        }
        if let Ok(state) = TraceState::parse(&bytes) {
            prop_assert_eq!(TraceState::parse(state.to_string()), Ok(state));
        }
    }

    #[test]
    fn single_wrong_byte_is_detected(place in 0..55_usize, byte: u8) {
        let mut text = SAMPLE.as_bytes().to_vec();
        let before = std::mem::replace(&mut text[place], byte);
        let fits = match before {
            b'-' => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        };
        prop_assert_eq!(TraceContext::parse(&text).is_ok(), fits);
    }

    #[test]
    fn tracestate_round_trips(members in prop::collection::btree_map("[a-z][a-z0-9_*/-]{0,9}", "[!-+.-<>-~]{1,9}", 0..20)) {
        let text: Vec<_> = members.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let state = TraceState::parse(text.join(" , ")).expect("good");
        prop_assert_eq!(state.to_string(), text.join(","));
    }
}

/// Returns the trace context of its call, followed by those of the next hops.
struct Hop(Option<ActorRef<Hop>>);

struct Ask;

impl Actor for Hop {}

impl Handler<Ask> for Hop {
    type Reply = Vec<Option<TraceContext>>;
    fn handle(&mut self, _: Ask, _: &Context<'_, Self>) -> Self::Reply {
        let mut seen = vec![trace::current()];
        if let Some(next) = &self.0 {
            seen.extend(next.call(Ask).expect("it answers"));
        }
        assert_eq!(trace::current(), seen[0], "a wait does not change it");
        seen
    }
}

/// Whether `child` is a child of `parent`.
fn is_child(child: Option<&TraceContext>, parent: &TraceContext) -> bool {
    child.is_some_and(|child| {
        child.trace_id() == parent.trace_id()
            && child.span_id() != parent.span_id()
            && child.parent() == Some(parent.span_id())
            && child.is_sampled() == parent.is_sampled()
            && child.state() == parent.state()
    })
}

#[test]
fn context_follows_calls_with_a_span_per_actor() {
    run(|| {
        let chain = start(Hop(Some(start(Hop(Some(start(Hop(None))))))));
        let state = TraceState::parse("rojo=1").expect("good");
        let context = sample().with_state(state);
        let seen = with_trace(context.clone(), || chain.call(Ask)).expect("it answers");
        assert_eq!(seen.len(), 3);
        let mut parent = context;
        for hop in seen {
            assert!(is_child(hop.as_ref(), &parent), "{hop:?} of {parent:?}");
            parent = hop.expect("it is a child");
        }
        assert_eq!(chain.call(Ask), Ok(vec![None; 3]), "and no further");
    });
}

struct Note(std::sync::mpsc::Sender<(u32, Option<TraceContext>)>);

impl Actor for Note {
    fn started(&mut self, _: &Context<'_, Self>) {
        let _ = self.0.send((0, trace::current()));
    }

    fn stopped(&mut self) {
        let _ = self.0.send((9, trace::current()));
    }
}

impl Handler<u32> for Note {
    type Reply = ();
    fn handle(&mut self, number: u32, _: &Context<'_, Self>) {
        let _ = self.0.send((number, trace::current()));
        assert!(number != 8, "eight is too much");
    }
}

#[test]
fn each_message_carries_its_senders_context() {
    run(|| {
        let (tell, told) = std_channel();
        let one = TraceContext::new(true);
        let note = with_trace(one.clone(), || start(Note(tell)));
        note.cast(1).expect("it lives");
        with_trace(one.clone(), || note.cast(2)).expect("it lives");
        let later = with_trace(one.clone(), || note.send_after(Duration::ZERO, 3));
        note.cast(4).expect("it lives");
        with_trace(sample(), || block_on(note.call_async(5))).expect("it answers");
        let mut all = std::collections::BTreeMap::new();
        while all.len() < 6 {
            match told.try_recv() {
                Ok((number, context)) => drop(all.insert(number, context)),
                Err(_) => sleep(Duration::from_micros(100)),
            }
        }
        for (number, parent) in [(2, &one), (3, &one), (5, &sample())] {
            assert!(is_child(all[&number].as_ref(), parent), "{number}");
        }
        for number in [0, 1, 4] {
            assert_eq!(all[&number], None, "{number}");
        }
        drop((later, note));
        while !matches!(told.try_recv(), Ok((9, None))) {
            yield_now();
        }
    });
}

#[test]
fn spawned_actor_keeps_its_context_over_waits() {
    run(|| {
        let look = || {
            let before = trace::current();
            sleep(Duration::from_micros(100));
            yield_now();
            assert_eq!(before, trace::current());
            let child = spawn(trace::current).join().expect("it ends");
            (before, child)
        };
        let context = sample();
        let (traced, scoped) = with_trace(context.clone(), || {
            let scoped = cancel::scope(cancel::OnFailure::Ignore, |scope| {
                scope.spawn(trace::current).join()
            });
            (spawn(look), scoped)
        });
        let plain = spawn(look);
        let (child, grandchild) = traced.join().expect("it ends");
        assert!(is_child(child.as_ref(), &context));
        assert!(is_child(grandchild.as_ref(), &child.expect("it has one")));
        assert_eq!(plain.join().expect("it ends"), (None, None));
        let scoped = scoped.expect("nothing fails").expect("it ends");
        assert!(is_child(scoped.as_ref(), &context));
    });
}

#[test]
fn supervised_child_has_no_context() {
    run(|| {
        let (tell, told) = std_channel();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .start()
            .expect("it starts");
        let child = ChildSpec::job("job", move || {
            let _ = tell.send(trace::current());
            sleep(Duration::from_secs(600));
        });
        with_trace(sample(), || supervisor.start_child(child)).expect("it starts");
        loop {
            match told.try_recv() {
                Ok(context) => return assert_eq!(context, None),
                Err(_) => yield_now(),
            }
        }
    });
}

#[test]
fn panic_restores_the_previous_context() {
    run(|| {
        let before = TraceContext::new(true);
        with_trace(before.clone(), || {
            let thrown = std::panic::catch_unwind(|| with_trace(sample(), || panic!("thrown")));
            assert!(thrown.is_err());
            assert_eq!(trace::current(), Some(before));
        });
        let (tell, _told) = std_channel();
        let note = start(Note(tell));
        assert!(with_trace(sample(), || note.call(8)).is_err());
        // The actor that ran on that stack has ended; the next one has no context.
        assert_eq!(spawn(trace::current).join().expect("it ends"), None);
    });
}

#[test]
fn thread_passes_its_context_to_actors() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle();
    assert_eq!(trace::current(), None);
    let context = sample();
    let (spawned, asked) = with_trace(context.clone(), || {
        assert_eq!(trace::current(), Some(sample()));
        let elsewhere = std::thread::spawn(trace::current).join().expect("it ends");
        assert_eq!(elsewhere, None, "another thread has not");
        let asked = handle.start(Hop(None)).call(Ask).expect("it answers");
        (handle.spawn(trace::current), asked)
    });
    assert!(is_child(
        spawned.join().expect("it ends").as_ref(),
        &context
    ));
    assert!(is_child(asked[0].as_ref(), &context));
    assert_eq!(trace::current(), None);
}

#[test]
fn future_keeps_its_context_on_every_poll() {
    let runtime = Runtime::start(Config::with_workers(1)).expect("it starts");
    let hop = runtime.handle().start(Hop(None));
    let context = sample();
    let seen = block_on(in_trace(context.clone(), async {
        let first = hop.call_async(Ask).await.expect("it answers");
        let second = hop.call_async(Ask).await.expect("it answers");
        (first, second)
    }));
    assert!(is_child(seen.0[0].as_ref(), &context));
    assert!(is_child(seen.1[0].as_ref(), &context), "also after a wait");
    assert_eq!(trace::current(), None);
}

#[test]
fn traced_value_passes_a_context_through_a_channel() {
    run(|| {
        let (sender, receiver) = channel();
        let worker = spawn(move || {
            let job: Traced<u32> = receiver.recv().expect("it comes");
            let plain: Traced<u32> = receiver.recv().expect("it comes");
            assert!(plain.context().is_none());
            let plain = plain.handle(|_| trace::current());
            (
                job.context().cloned(),
                job.handle(|_| trace::current()),
                plain,
            )
        });
        let context = sample();
        with_trace(context.clone(), || sender.send(Traced::new(1))).expect("it waits");
        sender.send(Traced::new(2)).expect("it waits");
        let (came, handled, plain) = worker.join().expect("it ends");
        assert_eq!(came.as_ref(), Some(&context));
        assert!(is_child(handled.as_ref(), &context));
        assert_eq!(plain, None);
        assert_eq!(Traced::new(7).into_inner(), 7);
    });
}
