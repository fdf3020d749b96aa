//! Callers with an older and a newer version, as in C: messages and a port.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_port::{
    Code, Completion, Failure, Incoming, Inline, InlineCall, Instance, Kind, Method, Owned,
    Package, Port, QueueLimits, Service, answer_host_call, check_compatible,
};
use thalweg_wire::{Decode, Encode, Shape, message};

use crate::described::{Texts, encoded, known, method, same};

const FIND: u32 = 0;
const TWICE: u32 = 1;
const ASK: u32 = 2;

const ENTRY: &str =
    "record{path:string,line:u64,kind:enum{unknown,file,folder},kept:option<own<thing>>}";

/// Number of resources that exist.
static THINGS: AtomicU32 = AtomicU32::new(0);

struct Thing;

impl Drop for Thing {
    fn drop(&mut self) {
        THINGS.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Books;

const fn inlined(mut method: Method) -> Method {
    method.options.is_inline = true;
    method
}

impl Service for Books {
    const PACKAGE: &'static Package = &Package {
        name: "test:books",
        version: "0.1.0",
        layout: 1,
        limits: QueueLimits::DEFAULT,
        methods: &[
            method(
                "books.find",
                [
                    "record{name:string,limit:u32}",
                    ENTRY,
                    "record{why:string,code:u32}",
                    "",
                ],
                "record{name:string,limit:u32}\nrecord{path:string,line:u64,kind:enum{unknown,file,folder},kept:option<own<thing>>}\nrecord{why:string,code:u32}\n",
            ),
            inlined(method(
                "books.twice",
                ["record{x:u32}", "record{x:u32,y:u32}", "", ""],
                "record{x:u32}\nrecord{x:u32,y:u32}\n\n",
            )),
            method(
                "books.ask",
                ["record{}", "u64", "", ""],
                "record{}\nu64\n\n",
            ),
            method(
                "books.each",
                ["record{}", "stream<record{x:u8}>", "", "record{x:u8}"],
                "record{}\nstream<record{x:u8}>\n\nrecord{x:u8}",
            ),
        ],
        imports: &[method(
            "host.look-up",
            ["record{key:u64,more:string}", "record{a:u8,b:u8}", "", ""],
            "record{key:u64,more:string}\nrecord{a:u8,b:u8}\n\n",
        )],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        if incoming.method() == ASK {
            let asked = incoming
                .call()
                .ask::<_, (u8, u8), String>(0, &(7u64, "more"), |reply| reply.value());
            return match asked.wait() {
                Ok((a, b)) => incoming.reply(&(u64::from(a) << 8 | u64::from(b))),
                Err(why) => panic!("{why:?}"),
            };
        }
        match incoming.params::<(String, u32)>() {
            Err(refusal) => incoming.refuse(refusal),
            Ok((name, limit)) if name.is_empty() => {
                incoming.reply_error(&("no name", limit));
            }
            Ok((name, limit)) => {
                THINGS.fetch_add(1, Ordering::SeqCst);
                let kept: Owned<Thing> = incoming.call().own(Thing).unwrap();
                incoming.reply(&(name, u64::from(limit), 2u8, Some(kept)));
            }
        }
    }

    fn inline() -> Option<Box<dyn Inline>> {
        Some(Box::new(Pure))
    }
}

struct Pure;

impl Inline for Pure {
    fn dispatch(&self, asked: InlineCall<'_>) {
        match asked.params::<(u32,)>() {
            Ok((x,)) => asked.reply(&(x, 2 * x)),
            Err(refusal) => asked.refuse(refusal),
        }
    }
}

/// Changes to the methods and imports of the library.
type Change = fn(&mut Vec<Texts>, &mut Vec<Texts>);

const OLDER_ENTRY: &str = "record{path:string,line:u64}";
const OLDER_ANSWER: &str = "record{a:u8}";
const OLDER_QUESTION: &str = "record{key:u64}";
const NEWER_ENTRY: &str = "record{path:string,line:u64,kind:enum{unknown,file,folder,link},kept:option<own<thing>>,size:u64}";

/// A caller and its port.
struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Host {
    fn new(methods: &[Texts], imports: &[Texts]) -> Result<Self, Failure> {
        let instance = Instance::open(|| Books, Instance::runtime().unwrap());
        instance.set_caller_schema(&known(methods), &known(imports))?;
        let port = Port::open(4).unwrap();
        instance.set_host_port(&port, 0).unwrap();
        Ok(Self { instance, port })
    }

    /// A caller whose functions equal the library's except for these changes.
    fn with(changed: &[(u32, usize, &'static str)], imports: [&'static str; 2]) -> Self {
        let mut methods = same(Books::PACKAGE.methods);
        for (method, part, text) in changed {
            methods[*method as usize].1[*part] = text;
        }
        let import = ("host.look-up", [imports[0], imports[1], "", ""]);
        Self::new(&methods, &[import]).unwrap()
    }

    fn older() -> Self {
        let changed = [
            (FIND, 0, "record{name:string}"),
            (FIND, 1, OLDER_ENTRY),
            (FIND, 2, "record{why:string}"),
            (TWICE, 1, "record{x:u32}"),
        ];
        Self::with(&changed, [OLDER_QUESTION, OLDER_ANSWER])
    }

    fn newer() -> Self {
        let changed = [
            (FIND, 0, "record{name:string,limit:u32,deep:bool}"),
            (FIND, 1, NEWER_ENTRY),
            (FIND, 2, "record{why:string,code:u32,hint:option<string>}"),
            (TWICE, 0, "record{x:u32,z:string}"),
            (TWICE, 1, "record{x:u32,y:u32,z:char}"),
        ];
        let imports = [
            "record{key:u64,more:string,depth:u8}",
            "record{a:u8,b:u8,c:u8}",
        ];
        Self::with(&changed, imports)
    }

    fn next(&self) -> Completion {
        self.port.wait(u64::MAX).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn call<P: Encode>(&self, method: u32, layout: &str, params: &P) -> Completion {
        let args = encoded(layout, params);
        let port = &self.port;
        self.instance
            .submit(port, 0, method, &args, u64::MAX)
            .unwrap();
        self.next()
    }
}

fn read<T: Decode>(layout: &str, code: Code, ended: &Completion) -> T {
    assert_eq!(ended.code, code, "{}", ended.message);
    let message = message::open(&ended.data, Shape::hash_of(layout)).unwrap();
    message.owned().unwrap()
}

#[test]
fn older_caller_receives_its_own_fields() {
    let host = Host::older();
    let ended = host.call(FIND, "record{name:string}", &("left",));
    let entry: (String, u64) = read(OLDER_ENTRY, Code::Ok, &ended);
    assert_eq!(entry, ("left".to_owned(), 0));
    // The resource that the caller's version does not contain was closed, so the next call finds it
    // gone.
    let ended = host.call(FIND, "record{name:string}", &("",));
    let why: (String,) = read("record{why:string}", Code::Error, &ended);
    assert_eq!(why, ("no name".to_owned(),));
    assert_eq!(THINGS.load(Ordering::SeqCst), 0);
}

#[test]
fn newer_caller_receives_defaults_for_missing_fields() {
    let host = Host::newer();
    let layout = "record{name:string,limit:u32,deep:bool}";
    let ended = host.call(FIND, layout, &("", 5u32, true));
    let why: (String, u32, Option<String>) = read(
        "record{why:string,code:u32,hint:option<string>}",
        Code::Error,
        &ended,
    );
    assert_eq!(why, ("no name".to_owned(), 5, None));
}

#[test]
fn inline_and_queued_calls_are_converted_alike() {
    for (host, params, ok) in [
        (
            Host::older(),
            encoded("record{x:u32}", &(4u32,)),
            "record{x:u32}",
        ),
        (
            Host::newer(),
            encoded("record{x:u32,z:string}", &(4u32, "z")),
            "record{x:u32,y:u32,z:char}",
        ),
    ] {
        let instance = &host.instance;
        let inline = instance.call_inline(TWICE, &params, u64::MAX).unwrap();
        instance
            .submit(&host.port, 0, TWICE, &params, u64::MAX)
            .unwrap();
        let queued = host.next();
        for ended in [inline, queued] {
            match ok.contains('y') {
                false => assert_eq!(read::<(u32,)>(ok, Code::Ok, &ended), (4,)),
                true => {
                    let seen: (u32, u32, char) = read(ok, Code::Ok, &ended);
                    assert_eq!(seen, (4, 8, '\0'));
                }
            }
        }
    }
}

#[test]
fn host_call_and_answer_are_converted() {
    let ask = |host: &Host| {
        let args = encoded("record{}", &());
        let port = &host.port;
        let submitted = host.instance.submit(port, 0, ASK, &args, u64::MAX);
        submitted.unwrap();
        let asked = host.next();
        assert_eq!((asked.kind, asked.number), (Kind::HostCall, 0));
        asked
    };
    let older = Host::older();
    let asked = ask(&older);
    assert_eq!(read::<(u64,)>(OLDER_QUESTION, Code::Ok, &asked), (7,));
    answer_host_call(asked.handle, Code::Ok, &encoded(OLDER_ANSWER, &(3u8,))).unwrap();
    assert_eq!(read::<u64>("u64", Code::Ok, &older.next()), 0x300);

    let newer = Host::newer();
    let asked = ask(&newer);
    let question = "record{key:u64,more:string,depth:u8}";
    let seen: (u64, String, u8) = read(question, Code::Ok, &asked);
    assert_eq!(seen, (7, "more".to_owned(), 0));
    let answered = encoded("record{a:u8,b:u8,c:u8}", &(3u8, 4u8, 5u8));
    answer_host_call(asked.handle, Code::Ok, &answered).unwrap();
    assert_eq!(read::<u64>("u64", Code::Ok, &newer.next()), 0x304);
}

#[test]
fn malformed_arguments_of_another_version_are_refused() {
    let host = Host::older();
    let mut args = encoded("record{name:string}", &("left",));
    let last = args.len() - 1;
    args[last] = 0xff;
    let (instance, port) = (&host.instance, &host.port);
    for size in [args.len(), last] {
        instance
            .submit(port, 0, FIND, &args[..size], u64::MAX)
            .unwrap();
        let ended = host.next();
        assert_eq!(ended.code, Code::Argument);
        assert!(ended.message.contains("malformed"), "{}", ended.message);
    }
}

#[test]
fn incompatible_versions_name_the_difference() {
    let refused = |change: Change| {
        let package = Books::PACKAGE;
        let (mut methods, mut imports) = (same(package.methods), same(package.imports));
        change(&mut methods, &mut imports);
        let (methods, imports) = (known(&methods), known(&imports));
        let why = check_compatible(package, &methods, &imports).unwrap_err();
        assert_eq!(why.code, Code::Version);
        let instance = Instance::open(|| Books, Instance::runtime().unwrap());
        assert_eq!(
            instance.set_caller_schema(&methods, &imports),
            Err(why.clone())
        );
        why.message
    };
    let cases: [(Change, &str); 8] = [
        (
            |methods, _| methods[0].1[1] = "record{line:u64,path:string}",
            "the result of books.find differ: `path` is `line` on the other side",
        ),
        (
            |methods, _| methods[0].1[1] = "record{path:string,line:u64,kind:enum{file}}",
            "the result of books.find differ: `kind.unknown` is `kind.file` on the other side",
        ),
        (
            |methods, _| methods[0].1[0] = "record{name:u8}",
            "the parameters of books.find differ: `name` is `string` on one side, `u8` on the other",
        ),
        (
            |methods, _| methods[0].1[2] = "",
            "the error of books.find differ",
        ),
        (
            |methods, _| methods[3].1[3] = "record{y:u8}",
            "the element of books.each differ: `x` is `y` on the other side",
        ),
        (
            |methods, _| methods[3].1[1] = "future<record{x:u8}>",
            "the result of books.each differ: it is `future<record{x:u8}>` on one side, `stream<record{x:u8}>` on the other",
        ),
        (
            |methods, _| methods.push(("books.more", ["record{}", "_", "", ""])),
            "the library has no books.more",
        ),
        (
            |_, imports| imports.clear(),
            "the service imports host.look-up, which the host does not provide",
        ),
    ];
    for (change, why) in cases {
        assert_eq!(refused(change), why);
    }
    // A caller without descriptions is accepted if its hashes are equal.
    let mut silent = known(&same(Books::PACKAGE.methods));
    let imports = known(&same(Books::PACKAGE.imports));
    silent.iter_mut().for_each(|it| it.description = "");
    check_compatible(Books::PACKAGE, &silent, &imports).unwrap();
    silent[0].hashes[1] ^= 1;
    let why = check_compatible(Books::PACKAGE, &silent, &imports).unwrap_err();
    assert_eq!(why.message, "the result of books.find differ");
}

#[test]
fn functions_are_matched_by_name() {
    let mut methods = same(Books::PACKAGE.methods);
    methods.remove(FIND as usize);
    methods.swap(0, 1);
    methods[1].1[1] = "record{x:u32}";
    let mut imports = same(Books::PACKAGE.imports);
    imports.insert(0, ("host.more", ["record{}", "_", "", ""]));
    let host = Host::new(&methods, &imports).unwrap();
    let (ask, twice, each) = (0, 1, 2);

    let args = encoded("record{x:u32}", &(4u32,));
    let ended = host.instance.call_inline(twice, &args, u64::MAX).unwrap();
    assert_eq!(read::<(u32,)>("record{x:u32}", Code::Ok, &ended), (4,));
    let ended = host.call(twice, "record{x:u32}", &(5u32,));
    assert_eq!(read::<(u32,)>("record{x:u32}", Code::Ok, &ended), (5,));

    let (instance, port) = (&host.instance, &host.port);
    let args = encoded("record{}", &());
    instance.submit(port, 0, ask, &args, u64::MAX).unwrap();
    let asked = host.next();
    assert_eq!((asked.kind, asked.number), (Kind::HostCall, 1));
    answer_host_call(
        asked.handle,
        Code::Ok,
        &encoded("record{a:u8,b:u8}", &(3u8, 4u8)),
    )
    .unwrap();
    assert_eq!(read::<u64>("u64", Code::Ok, &host.next()), 0x304);

    instance.stream_stats(each).unwrap();
    for none in [3, u32::MAX] {
        let why = instance.submit(port, 0, none, &args, u64::MAX).unwrap_err();
        assert_eq!(why.code, Code::Argument);
        assert_eq!(
            instance
                .call_inline(none, &args, u64::MAX)
                .unwrap_err()
                .code,
            Code::Argument
        );
        assert_eq!(
            instance.stream_stats(none).unwrap_err().code,
            Code::Argument
        );
        assert_eq!(instance.upstream(none, 0).unwrap_err().code, Code::Argument);
    }
}

#[test]
fn caller_schema_can_be_set_once() {
    let host = Host::older();
    let imports = known(&[("host.look-up", [OLDER_QUESTION, OLDER_ANSWER, "", ""])]);
    let again = host.instance.set_caller_schema(&[], &imports).unwrap_err();
    assert_eq!(again.code, Code::Argument);
}
