//! The functions of the service itself.

use crate::conformance::{
    Color, Conformance, ConformanceInline, Counter, CounterClient, Days, Failure, Feed, Fixed,
    Item, Keywords, MaybeCounter, Names, Nested, OracleHost, Pair, Point, Rights, Sample, Scalars,
    Shape, Spot, Wide,
};
use crate::feeds::{Mixed, feed, feed_at, mixed};
use crate::made::{Running, later, pause, sample, stream_of, wait_until, waits, written};
use crate::{EvenNumber, Factor, KeptNumber, Leases, TimedLease, elements, upstreams};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use thalweg::port::{FutureReader, Owned, Upstream, UpstreamFuture};
use thalweg::queue::clock;
use thalweg::{Call, CallError, Code, StreamReader, StreamWriter, Task};

/// The time after which the reply of a method that is about to return has been sent.
const ANSWERED: Duration = Duration::from_millis(200);

/// The service. Each instance has its own counts.
#[derive(Debug, Default)]
pub struct Echo {
    counters: Arc<AtomicU32>,
    running: Arc<AtomicU32>,
    waiting: Arc<AtomicU32>,
    leases: Arc<Leases>,
    ticking: Vec<Ticking>,
    let_go: Arc<AtomicU32>,
}

/// A stream of `ticks`, and its next number.
#[derive(Debug)]
struct Ticking(StreamWriter<u64>, u64);

/// Writes the numbers below `count`, and ends the stream by `stops`.
fn stopped(
    writer: StreamWriter<u64, Failure>,
    count: u64,
    how: &str,
) -> Result<(), thalweg::Failure> {
    for number in 0..count {
        writer.send(&number)?;
    }
    let other = writer.clone();
    match how {
        "finish" => {
            other.finish()?;
            writer.finish()
        }
        "one" => writer.finish(),
        "fail" => writer.fail(&Failure::Code(count as u32)),
        _ => Ok(()),
    }
}

fn failing(how: Option<Failure>) -> Result<u64, Failure> {
    how.map_or(Ok(7), Err)
}

/// The result of a host import, or the number of its outcome code.
fn host_result<T, E>(ended: Result<T, CallError<E>>) -> Result<T, u32> {
    ended.map_err(|why| match why {
        CallError::Service(_) => Code::Error as u32,
        CallError::Ended(failure) => failure.code as u32,
    })
}

/// Takes a counter out of a value, and returns its number.
fn take_counter(call: &Call, counter: Owned<CounterClient>) -> u64 {
    let counter = counter.take::<KeptNumber>(call);
    counter.map_or(0, |counter| counter.now())
}

/// Functions that return their parameter.
macro_rules! echo {
    ($($name:ident: $ty:ty,)*) => {
        $(fn $name(&mut self, _: &Call, value: $ty) -> $ty {
            value
        })*
    };
}

/// The inline functions.
#[derive(Debug, Default)]
pub struct Here;

impl ConformanceInline for Here {
    fn twice(&self, value: u32) -> u64 {
        u64::from(value) * 2
    }

    fn fail_here(&self, how: Option<Failure>) -> Result<u64, Failure> {
        failing(how)
    }

    fn panic_here(&self, message: String) -> u32 {
        panic!("{message}")
    }
}

impl Echo {
    /// The number of streams of `ticks`.
    fn reading(&self) -> u32 {
        u32::try_from(self.ticking.len()).expect("fewer streams than handles")
    }
}

impl Conformance for Echo {
    type Inline = Here;
    type Counter = KeptNumber;
    type Even = EvenNumber;
    type Scale = Factor;
    type Lease = TimedLease;

    echo! {
        echo_bool: bool,
        echo_u8: u8,
        echo_u16: u16,
        echo_u32: u32,
        echo_u64: u64,
        echo_s8: i8,
        echo_s16: i16,
        echo_s32: i32,
        echo_s64: i64,
        echo_f32: f32,
        echo_f64: f64,
        echo_char: char,
        echo_string: String,
        echo_bytes: Vec<u8>,
        echo_bools: Vec<bool>,
        echo_numbers: Vec<i64>,
        echo_floats: Vec<f64>,
        echo_strings: Vec<String>,
        echo_grid: Vec<Vec<i32>>,
        echo_points: Vec<Point>,
        echo_option: Option<String>,
        echo_option_twice: Option<Option<u32>>,
        echo_result: (Result<u64, String>,),
        echo_result_ok: Vec<Result<u32, ()>>,
        echo_result_error: Vec<Result<(), String>>,
        echo_result_bare: Vec<Result<(), ()>>,
        echo_tuple: (u8, String, f64, Option<char>),
        echo_point: Point,
        echo_spot: Spot,
        echo_scalars: Scalars,
        echo_nested: Nested,
        echo_keywords: Keywords,
        echo_shape: Shape,
        echo_shapes: Vec<Shape>,
        echo_color: Color,
        echo_colors: Vec<Color>,
        echo_rights: Rights,
        echo_days: Days,
        echo_wide: Wide,
        echo_names: Names,
        echo_failure: Failure,
        echo_key: [u8; 16],
        echo_three: [i64; 3],
        echo_fixed: Fixed,
        echo_keys: Vec<[u8; 2]>,
    }

    fn several(
        &mut self,
        _: &Call,
        r#type: u8,
        r#match: String,
        list: Vec<u16>,
        bool: Option<Point>,
    ) -> (u8, String, Vec<u16>, Option<Point>) {
        (r#type, r#match, list, bool)
    }

    fn nothing(&mut self, _: &Call) {}

    fn count(&mut self, call: &Call, first: u64, count: u64) -> StreamReader<u64> {
        stream_of(call, first..first.saturating_add(count))
    }

    fn items(
        &mut self,
        _: &Call,
        count: u64,
    ) -> Task<Result<StreamReader<Item, Failure>, Failure>> {
        Task::new(move |call| {
            let item = |number: u64| Item {
                number,
                name: format!("item {number}"),
                tags: (0..number % 3).map(|tag| format!("tag {tag}")).collect(),
                blob: number
                    .is_multiple_of(2)
                    .then(|| vec![number as u8; (number % 7) as usize]),
            };
            Ok(stream_of(call, (0..count).map(item)))
        })
    }

    fn latest(&mut self, call: &Call, count: u64) -> StreamReader<u64> {
        stream_of(call, 0..count)
    }

    fn breaks(&mut self, call: &Call, after: u64) -> StreamReader<u64> {
        let breaking =
            (0..=after).inspect(move |number| assert!(*number < after, "broken after {after}"));
        stream_of(call, breaking)
    }

    fn endless(&mut self, call: &Call) -> StreamReader<u64> {
        let running = Running::new(&self.running);
        stream_of(call, (0..).inspect(move |_| _ = &running))
    }

    fn running(&mut self, _: &Call) -> u32 {
        self.running.load(Ordering::Relaxed)
    }

    fn fail(&mut self, _: &Call, how: Option<Failure>) -> Result<u64, Failure> {
        failing(how)
    }

    fn fail_later(&mut self, _: &Call, how: Option<Failure>) -> Task<Result<u64, Failure>> {
        Task::new(move |_| failing(how))
    }

    fn fail_bare(&mut self, _: &Call, fails: bool) -> Result<(), ()> {
        if fails { Err(()) } else { Ok(()) }
    }

    fn panic(&mut self, _: &Call, message: String) -> u32 {
        panic!("{message}")
    }

    fn panic_later(&mut self, _: &Call, message: String) -> Task<u32> {
        Task::new(move |_| panic!("{message}"))
    }

    fn never(&mut self, _: &Call) -> Task<()> {
        waits(Running::new(&self.waiting), u64::MAX)
    }

    fn sleep(&mut self, _: &Call, milliseconds: u32) -> Task<u32> {
        Task::new(move |call| {
            pause(call, milliseconds);
            milliseconds
        })
    }

    fn ask(&mut self, call: &Call, key: u64) -> Result<String, u32> {
        host_result(OracleHost::of(call).look_up(key).wait())
    }

    fn ask_later(&mut self, _: &Call, key: u64) -> Task<Result<String, u32>> {
        Task::new(move |call| host_result(OracleHost::of(call).look_up(key).wait()))
    }

    fn tell(&mut self, _: &Call, words: Vec<String>, at: Option<u32>) -> Task<Result<u64, u32>> {
        Task::new(move |call| {
            let oracle = OracleHost::of(call);
            host_result(oracle.nod().wait())?;
            host_result(oracle.tell(&words, at).wait())
        })
    }

    fn counter(&mut self, _: &Call, start: u64) -> KeptNumber {
        KeptNumber::new(start, &self.counters)
    }

    fn counter_sum(
        &mut self,
        _: &Call,
        left: Arc<KeptNumber>,
        right: Arc<KeptNumber>,
    ) -> KeptNumber {
        KeptNumber::new(left.now().wrapping_add(right.now()), &self.counters)
    }

    fn counter_finish(&mut self, _: &Call, counter: Arc<KeptNumber>) -> u64 {
        counter.now()
    }

    fn even(&mut self, _: &Call, value: u32) -> Result<EvenNumber, Failure> {
        if value.is_multiple_of(2) {
            Ok(EvenNumber { half: value / 2 })
        } else {
            Err(Failure::Code(value))
        }
    }

    fn counters(&mut self, _: &Call) -> u32 {
        self.counters.load(Ordering::Relaxed)
    }

    fn many(
        &mut self,
        _: &Call,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        e: u8,
        f: String,
        g: u16,
        h: u32,
        i: Vec<u8>,
        j: u64,
        k: u8,
        n: Option<String>,
        counter: Arc<KeptNumber>,
        m: u16,
    ) -> (u64, String) {
        let bytes = i.iter().copied().map(u64::from);
        let small = [a, e, k].map(u64::from).into_iter().chain(bytes);
        let middle = [b, g, m]
            .map(u64::from)
            .into_iter()
            .chain([c, h].map(u64::from));
        let sum = small.chain(middle).chain([d, j, counter.now()]).sum();
        (sum, f + &n.unwrap_or_default())
    }

    fn samples(&mut self, call: &Call, count: u32) -> StreamReader<Sample> {
        stream_of(call, (0..count).map(sample))
    }

    fn shapes(&mut self, call: &Call, count: u32) -> StreamReader<Shape> {
        stream_of(call, (0..count).map(|side| Shape::Circle(side.into())))
    }

    fn give_counters(&mut self, call: &Call, start: u64, count: u32) -> Vec<Owned<CounterClient>> {
        let counter = |i| call.own(KeptNumber::new(start + u64::from(i), &self.counters));
        let counters = (0..count).map(counter).collect::<Result<_, _>>();
        counters.expect("there are as many handles")
    }

    fn total(&mut self, call: &Call, counters: Vec<Owned<CounterClient>>) -> u64 {
        counters
            .into_iter()
            .map(|counter| take_counter(call, counter))
            .sum()
    }

    fn first_of(&mut self, call: &Call, counter: Option<Owned<CounterClient>>) -> Option<u64> {
        counter.map(|counter| take_counter(call, counter))
    }

    fn swap(&mut self, _: &Call, value: Pair) -> Task<Result<Pair, MaybeCounter>> {
        let Pair { name, left, right } = value;
        let swapped = match right {
            Some(right) => Ok(Pair {
                name,
                left: right,
                right: Some(left),
            }),
            None => Err(MaybeCounter::One(left)),
        };
        Task::new(|_| swapped)
    }

    fn refuse(&mut self, _: &Call, value: MaybeCounter) -> Result<(), MaybeCounter> {
        Err(value)
    }

    fn later(&mut self, call: &Call, milliseconds: u32, text: String) -> FutureReader<String> {
        later(call, milliseconds, text)
    }

    fn never_comes(
        &mut self,
        _: &Call,
        message: Option<String>,
    ) -> Task<Result<FutureReader<Point, Failure>, Failure>> {
        Task::new(move |call| {
            let (writer, reader) = call.future();
            call.spawn(move |call| {
                if let Some(message) = message {
                    // Panics after the reply: a panic before it would end the call instead of the
                    // future.
                    wait_until(call, clock::deadline(ANSWERED));
                    panic!("{message}");
                }
                drop(writer);
            });
            Ok(reader)
        })
    }

    fn scale(&mut self, _: &Call, by: u64) -> Factor {
        Factor {
            by,
            counters: Arc::clone(&self.counters),
        }
    }

    fn ticks(&mut self, call: &Call) -> StreamReader<u64> {
        let (writer, reader) = call.stream();
        self.ticking.push(Ticking(writer, 0));
        reader
    }

    fn tick(&mut self, _: &Call, count: u32) -> u32 {
        self.ticking.retain_mut(|Ticking(writer, next)| {
            let numbers = *next..*next + u64::from(count);
            *next = numbers.end;
            numbers
                .into_iter()
                .all(|number| writer.send(&number).is_ok())
        });
        self.reading()
    }

    fn mark(&mut self, _: &Call, number: u64) -> u32 {
        self.ticking
            .retain(|Ticking(writer, _)| writer.control(&number).is_ok());
        self.reading()
    }

    fn end_ticks(&mut self, _: &Call) {
        for Ticking(writer, _) in self.ticking.drain(..) {
            let _ = writer.finish();
        }
    }

    fn drops_newest(&mut self, call: &Call, count: u64) -> StreamReader<u64> {
        written(call, 0..count)
    }

    fn drops_oldest(&mut self, call: &Call, count: u64) -> StreamReader<u64> {
        written(call, 0..count)
    }

    fn refuses(&mut self, call: &Call, count: u64) -> StreamReader<u64> {
        let (writer, reader) = call.stream();
        for number in 0..count {
            if writer.send(&number).is_err() {
                writer.lost(1);
            }
        }
        let _ = writer.finish();
        reader
    }

    fn waiting(&mut self, _: &Call) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    fn looked_up(&mut self, call: &Call, count: u64) -> StreamReader<String> {
        let (writer, reader) = call.stream();
        call.spawn(move |call| {
            for key in 0..count {
                let said = OracleHost::of(call).look_up(2 * key).wait();
                let text = said.unwrap_or_else(|why| format!("{why:?}"));
                if writer.send(&text).is_err() {
                    return;
                }
            }
            let _ = writer.finish();
        });
        reader
    }

    fn lease(&mut self, _: &Call, ms: u32) -> Task<Result<TimedLease, Failure>> {
        let leases = Arc::clone(&self.leases);
        Task::new(move |call| {
            pause(call, ms);
            match ms % 2 {
                0 => Ok(TimedLease::new(ms, leases)),
                _ => Err(Failure::Code(ms)),
            }
        })
    }

    fn leases(&mut self, _: &Call) -> (u32, u32) {
        let Leases { living, ended } = &*self.leases;
        (
            living.load(Ordering::Relaxed),
            ended.load(Ordering::Relaxed),
        )
    }

    fn sum_of(&mut self, _: &Call, numbers: Upstream<u64>) -> Task<Result<(u64, u64), u32>> {
        Task::new(move |_| upstreams::sum(numbers))
    }

    fn names_of(&mut self, _: &Call, items: Upstream<Item>) -> String {
        upstreams::names(items)
    }

    fn first_numbers(&mut self, _: &Call, count: u32, numbers: Upstream<u64>) -> Task<Vec<u64>> {
        Task::new(move |_| upstreams::first(count, numbers))
    }

    fn words_first(
        &mut self,
        _: &Call,
        numbers: Upstream<u64>,
        words: Upstream<String>,
    ) -> Task<(String, u64)> {
        Task::new(move |_| upstreams::words_first(numbers, words))
    }

    fn add_all(&mut self, call: &Call, counter: Arc<KeptNumber>, amounts: Upstream<u64>) -> u64 {
        for amount in amounts.map_while(Result::ok) {
            counter.add(call, amount);
        }
        counter.now()
    }

    fn hear(&mut self, _: &Call, text: UpstreamFuture<String>) -> Task<Result<String, u32>> {
        Task::new(move |_| upstreams::come(text))
    }

    fn beats_of(&mut self, _: &Call, beats: Upstream<()>) -> Task<u64> {
        Task::new(move |_| upstreams::beats(beats))
    }

    fn comes(&mut self, _: &Call, signal: UpstreamFuture<()>) -> Task<Result<(), u32>> {
        Task::new(move |_| upstreams::come(signal))
    }

    fn beats(&mut self, call: &Call, count: u64) -> StreamReader<()> {
        stream_of(call, (0..count).map(|_| ()))
    }

    fn ask_all(&mut self, _: &Call, keys: Upstream<u64>) -> Task<Vec<Result<String, u32>>> {
        Task::new(move |call| {
            let oracle = OracleHost::of(call);
            let keys = keys.map_while(Result::ok);
            keys.map(|key| host_result(oracle.look_up(key).wait()))
                .collect()
        })
    }

    fn signal(&mut self, call: &Call, milliseconds: u32) -> FutureReader<()> {
        later(call, milliseconds, ())
    }

    fn limited(&mut self, _: &Call) -> Task<()> {
        let minute = clock::deadline(Duration::from_mins(1));
        waits(Running::new(&self.waiting), minute)
    }

    fn held_up(&mut self, _: &Call) -> Task<()> {
        let waiting = Running::new(&self.waiting);
        let (turns, before) = (
            Arc::clone(&self.let_go),
            self.let_go.load(Ordering::Relaxed),
        );
        Task::new(move |call| {
            let _waiting = waiting;
            while turns.load(Ordering::Relaxed) == before && call.check().is_ok() {
                pause(call, 1);
            }
        })
    }

    fn let_go(&mut self, _: &Call) {
        self.let_go.fetch_add(1, Ordering::Relaxed);
    }

    fn bits(&mut self, call: &Call, count: u32) -> StreamReader<bool> {
        stream_of(call, (0..count).map(elements::bit))
    }

    fn letters(&mut self, call: &Call, count: u32) -> StreamReader<char> {
        stream_of(call, (0..count).map(elements::letter))
    }

    fn maybes(&mut self, call: &Call, count: u32) -> StreamReader<Option<String>> {
        stream_of(call, (0..count).map(elements::maybe))
    }

    fn couples(&mut self, call: &Call, count: u32) -> StreamReader<(u8, String)> {
        stream_of(call, (0..count).map(elements::couple))
    }

    fn rows(&mut self, call: &Call, count: u32) -> StreamReader<Vec<u16>> {
        stream_of(call, (0..count).map(elements::row))
    }

    fn outcomes(&mut self, call: &Call, count: u32) -> StreamReader<Result<u32, String>> {
        stream_of(call, (0..count).map(elements::outcome))
    }

    fn by_name(&mut self, call: &Call, names: u32, count: u64) -> StreamReader<Item> {
        written(
            call,
            (0..count).map(|number| elements::named(number, names)),
        )
    }

    fn feeds(&mut self, call: &Call, count: u32) -> Vec<Feed> {
        (0..count).map(|place| feed_at(call, place)).collect()
    }

    fn endless_feed(&mut self, call: &Call) -> Feed {
        let running = Running::new(&self.running);
        feed(call, "endless", (0..).inspect(move |_| _ = &running), None)
    }

    fn mixed(&mut self, _: &Call, count: u32) -> Task<Result<Mixed, Feed>> {
        Task::new(move |call| mixed(call, count))
    }

    fn stops(
        &mut self,
        call: &Call,
        count: u64,
        how: String,
    ) -> Result<StreamReader<u64, Failure>, Failure> {
        let (writer, reader) = call.stream();
        stopped(writer, count, &how).expect("a stream that nobody closed");
        Ok(reader)
    }

    fn rows_of(&mut self, call: &Call, count: u32, size: u32) -> StreamReader<String> {
        let last = ["x".repeat(size as usize), "x".to_owned()];
        stream_of(call, (0..count).map(|_| "x".to_owned()).chain(last))
    }

    fn fails_to_come(
        &mut self,
        call: &Call,
        code: u32,
    ) -> Result<FutureReader<Point, Failure>, Failure> {
        let (writer, reader) = call.future();
        let failed = writer.fail(&Failure::Code(code));
        failed.expect("a future that nobody closed");
        Ok(reader)
    }

    fn doze(&mut self, _: &Call, milliseconds: u32) -> u32 {
        thalweg::runtime::sleep(Duration::from_millis(milliseconds.into()));
        milliseconds
    }
}
