//! Any description of a guest's package is refused with a reason, or served. `THALWEG_TEST_SEED`
//! selects another run, `THALWEG_TEST_ROUNDS` its length.

use std::sync::Arc;
use std::time::Duration;

use thalweg_port::{
    Code, Failure, FunctionDescription, Guest, GuestCall, GuestObject, GuestPackage, Instance,
    MethodOptions, Overflow, PackageDescription, Port, QueueLimits, StreamOptions, close_handle,
    find, find_record_writer, guest_answer, guest_answer_resource, guest_answer_stream,
};
use thalweg_queue::clock;
use thalweg_wire::describe::Type;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 8) % limit
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

fn some_type(random: &mut Random, depth: u32) -> String {
    let flat = [
        "bool",
        "u8",
        "s16",
        "u32",
        "u64",
        "f32",
        "f64",
        "char",
        "string",
        "_",
        "enum{a,b}",
        "flags{a,b,c}",
        "own<cell>",
        "borrow<cell>",
        "list<u8>",
    ];
    if depth == 0 || random.one_in(3) {
        return random.pick(&flat).to_owned();
    }
    let inner = some_type(random, depth - 1);
    match random.below(9) {
        0 => format!("list<{inner}>"),
        1 => format!(
            "list<{inner},{}>",
            random.pick(&[0u64, 1, 7, 65_536, 1 << 31, 1 << 40])
        ),
        2 => format!("option<{inner}>"),
        3 => format!("result<{inner},{}>", some_type(random, depth - 1)),
        4 => format!("tuple<{inner},{}>", some_type(random, depth - 1)),
        5 => format!("record{{a:{inner},b:{}}}", some_type(random, depth - 1)),
        6 => format!("variant{{a,b({inner})}}"),
        7 => format!("stream<{inner}>"),
        _ => {
            let levels = random.pick(&[2, 30, 5_000]);
            format!("{}u8{}", "list<".repeat(levels), ">".repeat(levels))
        }
    }
}

/// The four lines of a function, mostly right.
fn types(random: &mut Random) -> String {
    let params = match random.below(4) {
        0 => "record{}".to_owned(),
        1 => some_type(random, 2),
        _ => format!("record{{a:{}}}", some_type(random, 3)),
    };
    let element = some_type(random, 3);
    let (ok, element) = match random.below(4) {
        0 => (format!("stream<{element}>"), element),
        1 => (format!("future<{element}>"), element),
        _ => (some_type(random, 3), String::new()),
    };
    let error = if random.one_in(3) {
        some_type(random, 2)
    } else {
        String::new()
    };
    let mut text = format!("{params}\n{ok}\n{error}\n{element}");
    if random.one_in(3) {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=random.below(3) {
            let at = random.below(letters.len() as u64) as usize;
            let letter = random.pick(&['<', '>', '{', '}', ',', ':', '\n', '0', 'u', '\0', 'é']);
            match random.below(3) {
                0 => letters[at] = letter,
                1 => letters.insert(at, letter),
                _ if letters.len() > 1 => drop(letters.remove(at)),
                _ => {}
            }
        }
        text = letters.into_iter().collect();
    }
    text
}

fn some_function<'a>(
    random: &mut Random,
    name: &'a str,
    types: &'a str,
) -> FunctionDescription<'a> {
    let numbers = [0, 1, 1_000_000, u64::MAX / 2, u64::MAX];
    FunctionDescription {
        name,
        types,
        is_async: random.one_in(2),
        options: MethodOptions {
            is_inline: random.one_in(16),
            is_brief: random.one_in(4),
            is_idempotent: random.one_in(2),
            is_cbor: random.one_in(4),
            notice_interval_ns: random.pick(&numbers),
            timeout_ns: random.pick(&numbers),
        },
        stream: StreamOptions {
            overflow: random.pick(&[
                Overflow::Block,
                Overflow::Latest,
                Overflow::DropNewest,
                Overflow::DropOldest,
                Overflow::Fail,
            ]),
            capacity: random.pick(&[0, 1, 63, 64, 8192, 1 << 20, u32::MAX]),
            linger_ns: random.pick(&numbers),
            max_record_size: random.pick(&[0, 64 << 10, 64 << 20, 512 << 20, u32::MAX]),
        },
    }
}

/// The first value of a type that is written with zeros only: a message.
fn zeros(ty: &Type<'_>) -> Vec<u8> {
    let mut message = vec![0; 16 + ty.size() as usize];
    let size = message.len() as u32;
    message[..4].copy_from_slice(&size.to_le_bytes());
    message[4..8].copy_from_slice(&(ty.hash() as u32).to_le_bytes());
    message[12..16].copy_from_slice(&16u32.to_le_bytes());
    message
}

/// Answers with zeros.
struct Zeros {
    methods: Vec<String>,
}

impl Guest for Zeros {
    fn open(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn call(&self, _: u64, call: GuestCall<'_>) {
        let lines: Vec<_> = self.methods[call.method as usize].split('\n').collect();
        if let Ok(writer) = guest_answer_stream(call.call) {
            let size = Type::parse(lines[3]).unwrap().size() as usize;
            let records = vec![0; size * 3];
            let stream = find_record_writer(writer).unwrap();
            let (written, wrote) = stream.write(&records, 0, 3, false, 0);
            assert_eq!(written == 3, wrote.is_ok(), "{wrote:?}");
            let _ = stream.finish();
            close_handle(writer).unwrap();
            return;
        }
        let answered = guest_answer(call.call, Code::Ok, &zeros(&Type::parse(lines[1]).unwrap()));
        if answered.is_err() {
            let object = GuestObject { kind: 0, number: 0 };
            let late = guest_answer_resource(call.call, object).unwrap_err();
            assert_eq!(late.code, Code::Stale);
        }
    }

    fn cancel(&self, _: u64, _: u64) {}
    fn drop_resource(&self, _: u64, _: GuestObject) {}
    fn close(&self, _: u64) {}
}

/// Calls each method. The call has an outcome.
fn serve(package: &'static GuestPackage) {
    let methods = package.package().methods;
    let guest = Zeros {
        methods: methods
            .iter()
            .map(|method| method.description.to_owned())
            .collect(),
    };
    let runtime = Instance::runtime().unwrap();
    let instance = Instance::open_guest(package, Arc::new(guest), runtime);
    let port = Port::open(4).unwrap();
    for (number, method) in (0..).zip(methods) {
        let lines: Vec<_> = method.description.split('\n').collect();
        let params = Type::parse(lines[0]).unwrap();
        let result = Type::parse(lines[1]).unwrap();
        if params.size().max(result.size()) > 1 << 20 {
            continue;
        }
        let deadline = clock::deadline(Duration::from_secs(10));
        let submitted = instance.submit(&port, 0, number, &zeros(&params), deadline);
        submitted.unwrap();
        port.wait(clock::deadline(Duration::from_secs(60))).unwrap();
        let mut completion = port.reap().unwrap().next().unwrap();
        let known = [Code::Ok, Code::Argument, Code::GuestLost, Code::TimedOut];
        assert!(known.contains(&completion.code), "{completion:?}");
        if let Ok(handle) = completion.take(0) {
            assert!(find(handle).is_ok());
            close_handle(handle).unwrap();
        }
    }
    instance.close();
}

#[test]
fn any_description_is_refused_or_served() {
    let setting =
        |name, default| std::env::var(name).map_or(default, |value| value.parse::<u64>().unwrap());
    let seed = setting("THALWEG_TEST_SEED", 1);
    let mut served = 0;
    let mut refused = 0;
    for round in 0..setting("THALWEG_TEST_ROUNDS", 2_000) {
        let mut random = Random((seed + round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let names = ["i.f", "i.[method]cell.f", "", "f", "i.é\u{1b}"];
        let all: Vec<_> = (0..random.below(4))
            .map(|_| {
                (
                    random.pick(&names[..if round % 8 == 0 { 5 } else { 2 }]),
                    types(&mut random),
                )
            })
            .collect();
        let mut functions = || {
            all.iter()
                .map(|(name, types)| some_function(&mut random, name, types))
                .collect()
        };
        let description = PackageDescription {
            name: "a:b",
            methods: functions(),
            imports: functions(),
            version: "0.1.0",
            limits: QueueLimits {
                max_queued_calls: 1,
                max_queued_bytes: 1 << 20,
                blocks_on_overflow: round % 2 == 0,
            },
        };
        let found = std::panic::catch_unwind(|| match GuestPackage::of(&description) {
            Ok(package) => {
                serve(package);
                true
            }
            Err(why) => {
                assert_eq!(why.code, Code::Argument);
                assert!(!why.message.is_empty());
                false
            }
        });
        match found {
            Ok(true) => served += 1,
            Ok(false) => refused += 1,
            Err(_) => panic!("seed {}: {description:#?}", seed + round),
        }
    }
    assert!(
        served > 50 && refused > 50,
        "{served} were served, {refused} refused"
    );
}
