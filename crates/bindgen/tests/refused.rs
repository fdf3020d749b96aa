//! What is refused, with its place and reason.

use std::fs;
use std::path::PathBuf;
use thalweg_bindgen::{SourceError, parse};

/// A folder of its own for a test, gone when dropped.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().expect("a file has a folder"))
                .expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The refusal of `name`, without the folder.
    fn refusal(&self, name: &str) -> String {
        match parse(&self.path(name)) {
            Ok(package) => panic!("not refused: {package:#?}"),
            Err(refused) => self.shown(refused),
        }
    }

    fn shown(&self, refused: SourceError) -> String {
        let prefix = format!("{}/", self.0.path().display());
        let text = refused.to_string();
        text.strip_prefix(&prefix)
            .map(str::to_owned)
            .unwrap_or(text)
    }
}

/// The refusal of an interface with these lines in it; the first is line 3.
fn refusal(lines: &str) -> String {
    let text =
        format!("package a:b@0.1.0;\ninterface i {{\n{lines}\n}}\nworld w {{ export i; }}\n");
    Folder::with(&[("b.wit", &text)]).refusal("b.wit")
}

/// The refusal of a policy file beside an interface with streams, plain functions and a resource.
fn policy_refusal(toml: &str) -> String {
    let wit = "package a:b@0.1.0;
interface i {
  s: func() -> stream<u8>;
  f: func();
  resource r { t: func() -> stream<u8>; }
  a: async func();
}
world w { export i; }
";
    Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]).refusal("b.wit")
}

#[test]
fn map() {
    assert_eq!(
        refusal("  f: func(x: u8) -> map<string, u32>;"),
        "b.wit:3:21: type `map<string, u32>`: maps are not supported: use `list<tuple<K, V>>`"
    );
}

#[test]
fn error_context() {
    assert_eq!(
        refusal("  record r {\n    why: error-context,\n  }\n  f: func(r: r);"),
        "b.wit:4:5: type `error-context`: error contexts are not supported: use a string or a variant"
    );
}

#[test]
fn fixed_length_list_that_is_too_large_or_empty() {
    assert_eq!(
        refusal("  type key = list<u64, 8193>;\n  f: func(k: key);"),
        "b.wit:3:8: type `list<u64, 8193>`: it has 65544 bytes, and 1 to 65536 are allowed: use a list"
    );
    assert_eq!(
        refusal("  f: func(k: list<u8, 0>);"),
        "b.wit:3:14: type `list<u8, 0>`: it has 0 bytes, and 1 to 65536 are allowed: use a list"
    );
}

#[test]
fn stream_or_future_inside_of_a_parameter() {
    let reason = "a stream or a future is a parameter of its own, and cannot be inside another one";
    assert_eq!(
        refusal("  f: func(a: u8, x: list<future<u32>>);"),
        format!("b.wit:3:18: type `list<future<u32>>`: {reason}")
    );
    assert_eq!(
        refusal("  record r { s: option<stream<u8>> }\n  f: func(r: r) -> r;"),
        format!("b.wit:4:11: type `r`: {reason}")
    );
}

#[test]
fn borrowed_resource_inside_a_type() {
    let reason = "only a parameter can be a borrow, not a part of a value";
    assert_eq!(
        refusal("  resource r;\n  record s { r: borrow<r> }\n  f: func(s: s);"),
        format!("b.wit:4:24: type `borrow<r>`: {reason}")
    );
    assert_eq!(
        refusal("  resource r;\n  f: func(l: list<borrow<r>>);"),
        format!("b.wit:4:26: type `borrow<r>`: {reason}")
    );
}

#[test]
fn stream_or_future_inside_of_another() {
    let reason =
        "the elements of a stream and the value of a future cannot contain resources or streams";
    assert_eq!(
        refusal("  f: func() -> list<stream<stream<u8>>>;"),
        format!("b.wit:3:21: type `stream<u8>`: {reason}")
    );
    assert_eq!(
        refusal("  record r { s: stream<u8> }\n  f: func() -> future<r>;"),
        format!("b.wit:4:16: type `r`: {reason}")
    );
}

#[test]
fn stream_among_many_parameters() {
    let many: String = (0..12).map(|i| format!("p{i}: u8, ")).collect();
    assert_eq!(
        refusal(&format!("  f: func({many}s: stream<u8>);")),
        "b.wit:3:109: type `stream<u8>`: a function with more than 12 parameters cannot have a stream or a future among them"
    );
}

#[test]
fn stream_of_resources_as_a_parameter() {
    assert_eq!(
        refusal("  resource r;\n  f: func(s: stream<r>);"),
        "b.wit:4:14: type `r`: the elements of a stream and the value of a future cannot contain resources or streams"
    );
}

#[test]
fn stream_of_resources_and_future_of_one() {
    assert_eq!(
        refusal("  resource r;\n  f: func() -> stream<r>;"),
        "b.wit:4:16: type `r`: the elements of a stream and the value of a future cannot contain resources or streams"
    );
    assert_eq!(
        refusal("  resource r;\n  record s { r: r }\n  f: func() -> stream<option<s>>;"),
        "b.wit:5:16: type `option<s>`: the elements of a stream and the value of a future cannot contain resources or streams"
    );
    assert_eq!(
        refusal("  resource r;\n  f: func() -> future<r>;"),
        "b.wit:4:16: type `r`: the elements of a stream and the value of a future cannot contain resources or streams"
    );
}

#[test]
fn alias_of_a_resource_or_a_stream() {
    assert_eq!(
        refusal("  resource r;\n  type q = r;\n  f: func(q: borrow<r>);"),
        "b.wit:4:8: type `r`: an alias of a resource is not supported: use the resource's own name"
    );
    assert_eq!(
        refusal("  resource r;\n  type q = own<r>;\n  f: func(q: q);"),
        "b.wit:4:8: type `r`: an alias of a resource is not supported: use the resource's own name"
    );
    assert_eq!(
        refusal("  type s = stream<u8>;\n  f: func() -> s;"),
        "b.wit:3:8: type `stream<u8>`: an alias of a stream or a future is not supported: write the type where it is used"
    );
}

#[test]
fn recursive_type() {
    assert_eq!(
        refusal("  record tree {\n    children: list<tree>,\n  }\n  f: func(t: tree);"),
        "b.wit:4:20: `tree`: type `tree` depends on itself"
    );
}

#[test]
fn getter() {
    assert_eq!(
        refusal("  resource r {\n    size: get() -> u32;\n  }"),
        "b.wit:4:5: function `[method][get]r.size`: getters and setters are not supported: write a method"
    );
}

#[test]
fn more_tuple_fields_than_a_tuple_has() {
    let list = |item: &str, count| vec![item; count].join(", ");
    assert_eq!(
        refusal(&format!("  f: func(t: tuple<{}>);", list("u8", 13))),
        format!(
            "b.wit:3:14: type `tuple<{}>`: a tuple has at most 12 fields: use a record",
            list("u8", 13)
        )
    );
}

#[test]
fn type_that_is_nested_too_deeply() {
    let deep = |depth| {
        format!(
            "  f: func(x: {}u8{});",
            "list<".repeat(depth),
            ">".repeat(depth)
        )
    };
    let refused = refusal(&deep(65));
    assert!(
        refused.starts_with("b.wit:3:14: type `list<list<"),
        "{refused}"
    );
    assert!(
        refused.ends_with(": it is nested 65 levels deep; the limit of a message is 64"),
        "{refused}"
    );
    let text = format!(
        "package a:b@0.1.0;\ninterface i {{\n{}\n}}\nworld w {{ export i; }}\n",
        deep(64)
    );
    let folder = Folder::with(&[("b.wit", &text)]);
    parse(&folder.path("b.wit")).expect("64 is allowed");
}

#[test]
fn type_that_doubles_with_each_line() {
    let doubling: Vec<_> = (1..40)
        .map(|i| format!("record r{i} {{ a: r{0}, b: r{0} }}", i - 1))
        .collect();
    let refused = refusal(&format!(
        "record r0 {{ a: u8 }}\n{}\nf: func(r: r39);",
        doubling.join("\n")
    ));
    assert!(
        refused.ends_with("it has too many parts, including all types that it uses"),
        "{refused}"
    );
}

#[test]
fn package_without_a_version() {
    let folder = Folder::with(&[(
        "b.wit",
        "// first\npackage a:b;\ninterface i { f: func(); }\nworld w { export i; }",
    )]);
    assert_eq!(
        folder.refusal("b.wit"),
        "b.wit:2:1: package `a:b`: it has no version: write `@0.1.0` after its name"
    );
}

#[test]
fn no_world_and_two_worlds() {
    let none = Folder::with(&[("b.wit", "package a:b@1.0.0;\ninterface i { f: func(); }")]);
    assert_eq!(
        none.refusal("b.wit"),
        "b.wit:1:1: package `a:b@1.0.0`: it has no world: write `world library { export NAME; }`"
    );
    let two = "package a:b@1.0.0;\ninterface i { f: func(); }\nworld w { export i; }\nworld v { export i; }";
    assert_eq!(
        Folder::with(&[("b.wit", two)]).refusal("b.wit"),
        "b.wit:4:7: world `v`: a package has one world, and this is another"
    );
}

#[test]
fn world_that_exports_nothing_two_interfaces_a_function_or_an_empty_interface() {
    let world = |lines: &str| {
        let text = format!(
            "package a:b@1.0.0;\ninterface i {{ f: func(); }}\ninterface j {{ f: func(); }}\ninterface e {{ }}\nworld w {{\n{lines}\n}}"
        );
        Folder::with(&[("b.wit", &text)]).refusal("b.wit")
    };
    assert_eq!(
        world(""),
        "b.wit:5:7: world `w`: it exports no interface: write `export NAME;`"
    );
    assert_eq!(
        world("export i;\nexport j;"),
        "b.wit:7:8: export of `a:b/j@1.0.0`: a world exports one interface, and this is another"
    );
    assert_eq!(
        world("export f: func();"),
        "b.wit:6:8: export of `f`: a world exports one interface: move functions and types into it"
    );
    assert_eq!(
        world("export e;"),
        "b.wit:6:8: export of `a:b/e@1.0.0`: it has no function"
    );
}

#[test]
fn world_that_imports() {
    let world = |lines: &str| {
        let text = format!(
            "package a:b@1.0.0;\ninterface i {{ f: func(); }}\ninterface j {{ f: func(); }}\ninterface k {{ f: func(); }}
interface r {{ resource r; }}\ninterface s {{ s: func() -> stream<u8>; }}\nworld w {{\nexport i;\n{lines}\n}}"
        );
        Folder::with(&[("b.wit", &text)]).refusal("b.wit")
    };
    assert_eq!(
        world("import j;\nimport k;"),
        "b.wit:7:7: import of `a:b/k@1.0.0`: a world imports one interface with functions, and this is another"
    );
    assert_eq!(
        world("import g: func();"),
        "b.wit:9:8: import of `g`: move it into an interface, and import the interface"
    );
    assert_eq!(
        world("import r;"),
        "b.wit:7:7: import of `a:b/r@1.0.0`: an imported interface has functions and types, but no resources"
    );
    assert_eq!(
        world("import s;"),
        "b.wit:6:15: function `s`: a host import returns only values, no resource and no stream"
    );
}

#[test]
fn resource_of_another_interface() {
    let text = "package a:b@1.0.0;
interface j { resource r; }
interface i { use j.{r}; f: func(r: borrow<r>); }
world w { export i; }";
    let refused = Folder::with(&[("b.wit", text)]).refusal("b.wit");
    assert!(refused.starts_with("b.wit:"), "{refused}");
    assert!(
        refused.contains("an imported interface has functions")
            || refused.contains("another interface"),
        "{refused}"
    );
}

#[test]
fn two_types_of_one_name_from_two_interfaces() {
    let text = "package a:b@1.0.0;
interface j { record r { x: u8 } record s { r: r } }
interface i { use j.{s}; record r { y: u8 } f: func(r: r, s: s); }
world w { export i; }";
    assert_eq!(
        Folder::with(&[("b.wit", text)]).refusal("b.wit"),
        "b.wit:3:33: type `r`: the package already uses another type of this name, from another interface"
    );
}

#[test]
fn types_of_another_interface_and_another_package_are_taken_along() {
    let folder = Folder::with(&[
        (
            "wit/b.wit",
            "package a:b@1.0.0;\ninterface i { use j.{s}; use c:d/k.{t as u}; f: func(s: s, u: u); }\nworld w { export i; }",
        ),
        ("wit/j.wit", "interface j { record s { x: u8 } }"),
        (
            "wit/deps/d.wit",
            "package c:d;\ninterface k { enum t { one } }",
        ),
    ]);
    let package = parse(&folder.path("wit")).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> = package.types.iter().map(|def| def.name.as_str()).collect();
    assert_eq!(names, ["s", "t", "u"]);
}

#[test]
fn text_that_is_not_wit() {
    assert_eq!(
        refusal("  f func();"),
        "b.wit:3:5: `func`: expected ':', found keyword `func`"
    );
    assert_eq!(
        refusal("  f: func(x: nope);"),
        "b.wit:3:14: `nope`: name `nope` does not exist"
    );
    let folder = Folder::with(&[("b.wit", "package a:b@1.0.0;\nworld w {")]);
    assert_eq!(
        folder.refusal("b.wit"),
        "b.wit:2:10: end of file: expected `import`, `export`, `include`, `use`, or type definition, found eof"
    );
}

#[test]
fn column_is_counted_in_characters() {
    assert_eq!(
        refusal("  /* äöü */ f: func() -> list<future<future>>;"),
        "b.wit:3:31: type `future`: the elements of a stream and the value of a future cannot contain resources or streams"
    );
}

#[test]
fn more_flags_than_wit_allows() {
    let flags: Vec<_> = (0..33).map(|i| format!("x{i}")).collect();
    assert_eq!(
        refusal(&format!(
            "  flags x {{ {} }}\n  f: func(x: x);",
            flags.join(", ")
        )),
        "b.wit:3:163: `x32`: cannot have more than 32 flags"
    );
}

#[test]
fn file_that_is_not_there() {
    let folder = Folder::with(&[]);
    let refused = folder.refusal("b.wit");
    assert!(
        refused.starts_with("b.wit:1:1: file: it cannot be read: No such file"),
        "{refused}"
    );
    fs::create_dir(folder.path("wit")).expect("a folder can be made");
    assert_eq!(
        folder.refusal("wit"),
        "wit:1:1: directory: it contains no .wit file"
    );
}

#[test]
fn policy_for_a_function_that_does_not_exist() {
    assert_eq!(
        policy_refusal("# first\n[i.matchs]\noverflow = \"block\"\n"),
        "b.thalweg.toml:2:4: key `i.matchs`: there is no such function; there are: `i.s`, `i.f`, `i.r.t`, `i.a`"
    );
    assert_eq!(
        policy_refusal("[j.s]\n"),
        "b.thalweg.toml:1:2: key `j`: there is no such function; there are: `i.s`, `i.f`, `i.r.t`, `i.a`"
    );
    assert_eq!(
        policy_refusal("[i.r.u]\n"),
        "b.thalweg.toml:1:6: key `i.r.u`: there is no such function; there are: `i.s`, `i.f`, `i.r.t`, `i.a`"
    );
}

#[test]
fn policy_for_a_function_without_a_stream() {
    assert_eq!(
        policy_refusal("[i.f]\ncapacity = 64\n"),
        "b.thalweg.toml:2:1: key `i.f.capacity`: it is an option of a function that returns a stream"
    );
}

#[test]
fn unknown_option() {
    assert_eq!(
        policy_refusal("[i.s]\noverflow = \"block\"\nretries = 3\n"),
        "b.thalweg.toml:3:1: key `i.s.retries`: there is no such option; there are: `timeout`, `notice_interval`, `idempotent`, `format`, \
         `inline`, `brief`, `overflow`, `capacity`, `conflation_key`, `linger`, `max_record_size`"
    );
    assert_eq!(
        policy_refusal("i.s = 3\n"),
        "b.thalweg.toml:1:3: key `i.s`: it must be a table with options like `capacity`"
    );
}

/// Of a table and a line in it: the refusal's reason, whose place is the line's key.
fn option_refusal(table: &str, line: &str) -> String {
    let name = line.split(' ').next().expect("an option has a name");
    let refused = policy_refusal(&format!("[{table}]\n{line}\n"));
    let place = format!("b.thalweg.toml:2:1: key `{table}.{name}`: ");
    match refused.strip_prefix(&place) {
        Some(reason) => reason.to_owned(),
        None => panic!("not at its key: {refused}"),
    }
}

#[test]
fn function_with_handles_cannot_have_the_format_cbor() {
    for (function, reason) in [
        (
            "i.s",
            "a function with the format CBOR returns only values, no resource and no stream",
        ),
        (
            "i.r.t",
            "a function with the format CBOR takes only values, and `self` is a resource of the service",
        ),
    ] {
        assert_eq!(option_refusal(function, "format = \"cbor\""), reason);
    }
}

#[test]
fn brief_function_that_waits_or_is_inline() {
    let wit = "package a:b@0.1.0;
interface i {
  resource r { m: func() -> stream<u8>; }
  f: func();
  s: func(numbers: stream<u8>);
}
world w { export i; }
";
    for (table, place, reason) in [
        (
            "[i.f]\nbrief = true\ninline = true\n",
            "3:1: key `i.f.inline`",
            "a function is either inline or brief",
        ),
        (
            "[i.f]\nnotice_interval = \"5s\"\nbrief = true\n",
            "3:1: key `i.f.brief`",
            "a brief function never waits: it has no notices",
        ),
        (
            "[i.s]\nbrief = true\n",
            "2:1: key `i.s.brief`",
            "a brief function never waits, but `numbers` is a stream or a future",
        ),
    ] {
        let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", table)]);
        assert_eq!(
            folder.refusal("b.wit"),
            format!("b.thalweg.toml:{place}: {reason}")
        );
    }
    let toml = "[i.r.m]\nbrief = true\n[i.f]\nbrief = true\ntimeout = \"5s\"\n";
    let folder = Folder::with(&[("b.wit", wit), ("b.thalweg.toml", toml)]);
    let package = thalweg_bindgen::parse(&folder.path("b.wit")).expect("it is right");
    let brief: Vec<_> = package
        .functions
        .iter()
        .map(|f| f.options.is_brief)
        .collect();
    assert_eq!(brief, [true, true, false]);
}

#[test]
fn inline_function_with_timeout_or_notices() {
    let reason = "an inline function always runs to completion: it has no notices and no timeout";
    for option in ["timeout", "notice_interval"] {
        let (one, other) = ("inline = true", format!("{option} = \"5s\""));
        for (lines, key) in [
            (format!("{one}\n{other}"), option),
            (format!("{other}\n{one}"), "inline"),
        ] {
            assert_eq!(
                policy_refusal(&format!("[i.f]\n{lines}\n")),
                format!("b.thalweg.toml:3:1: key `i.f.{key}`: {reason}")
            );
        }
    }
}

#[test]
fn option_at_the_wrong_place() {
    for (table, line, reason) in [
        ("i.r", "max_queued_calls = 1", "the interface"),
        (
            "i.f",
            "overflow = \"block\"",
            "the interface, or of a function that returns a stream",
        ),
        ("i", "capacity = 64", "a function that returns a stream"),
        ("i", "constructor = \"async\"", "a resource"),
        ("i.f", "destructor = \"async\"", "a resource"),
        ("i.r", "timeout = \"5s\"", "a function"),
        ("i.a", "inline = true", "a `func`, not of an `async func`"),
        (
            "i.f",
            "conflation_key = \"path\"",
            "a function that returns a stream",
        ),
        (
            "i.a",
            "linger = \"1ms\"",
            "a function that returns a stream",
        ),
    ] {
        let expected = format!("it is an option of {reason}");
        assert_eq!(option_refusal(table, line), expected, "{line}");
    }
}

#[test]
fn option_with_an_invalid_value() {
    for (table, line, reason) in [
        ("i", "max_queued_calls = 0", "a number of at least 1"),
        ("i", "max_queued_calls = 1048577", "at most 1048576"),
        ("i", "max_queued_bytes = 64", "a size like \"64MiB\""),
        ("i", "max_queued_bytes = \"0KiB\"", "a size like \"64MiB\""),
        ("i", "overflow = true", "\"fail\" or \"block\""),
        ("i.r", "constructor = \"sync\"", "\"async\""),
        ("i.f", "timeout = 5", "a duration like \"250ms\""),
        (
            "i.f",
            "notice_interval = \"5 s\"",
            "a duration like \"250ms\"",
        ),
        ("i.f", "notice_interval = \"999us\"", "at least 1ms"),
        ("i.f", "idempotent = 1", "true or false"),
        ("i.f", "inline = \"yes\"", "true or false"),
        ("i.f", "format = \"json\"", "\"flat\" or \"cbor\""),
        ("i.s", "conflation_key = \"\"", "text"),
    ] {
        let expected = format!("it must be {reason}");
        assert_eq!(option_refusal(table, line), expected, "{line}");
    }
}

#[test]
fn policy_for_unknown_function_lists_some_functions() {
    let functions: String = (0..22).map(|n| format!("f{n}: func(); ")).collect();
    let wit =
        format!("package a:b@0.1.0;\ninterface i {{ {functions}}}\nworld w {{ export i; }}\n");
    let folder = Folder::with(&[("b.wit", &wit), ("b.thalweg.toml", "[i.g]\n")]);
    let refusal = folder.refusal("b.wit");
    assert!(refusal.contains("there are: `i.f0`, `i.f1`, "), "{refusal}");
    assert!(refusal.ends_with("`i.f19` and 2 more"), "{refusal}");
}

#[test]
fn bad_policy() {
    let reason = "it must be \"block\", \"latest\", \"conflate\", \"drop-newest\", \"drop-oldest\" or \"fail\"";
    assert_eq!(
        policy_refusal("[i.s]\noverflow = \"newest\"\n"),
        format!("b.thalweg.toml:2:12: key `i.s.overflow`: {reason}")
    );
    assert_eq!(
        policy_refusal("[i.s]\noverflow = 1\n"),
        format!("b.thalweg.toml:2:12: key `i.s.overflow`: {reason}")
    );
}

#[test]
fn bad_capacity() {
    for bad in ["63", "1048577", "-1", "\"64\"", "64.0"] {
        assert_eq!(
            policy_refusal(&format!("[i.r.t]\ncapacity = {bad}\n")),
            "b.thalweg.toml:2:12: key `i.r.t.capacity`: it must be a number of records, 64 to 1048576"
        );
    }
}

#[test]
fn policy_file_that_is_not_toml() {
    let refused = policy_refusal("[i.s]\noverflow = block\n");
    assert!(
        refused.starts_with("b.thalweg.toml:2:12: file: it is not TOML: "),
        "{refused}"
    );
}

#[test]
fn policy_file_that_belongs_to_no_package() {
    let wit = "package a:b@0.1.0;\ninterface i { f: func(); }\nworld w { export i; }";
    let folder = Folder::with(&[("wit/b.wit", wit), ("wit/c.thalweg.toml", "")]);
    let refused = "wit/c.thalweg.toml:1:1: file: no package here has this policy file; the policy file of this package is b.thalweg.toml";
    assert_eq!(folder.refusal("wit"), refused);
    assert_eq!(folder.refusal("wit/b.wit"), refused);
    // The folder of a single file may contain other packages.
    fs::write(folder.path("wit/c.wit"), "interface j { }").expect("a file can be written");
    assert_eq!(folder.refusal("wit"), refused);
    parse(&folder.path("wit/b.wit")).unwrap_or_else(|refused| panic!("{refused}"));
}
