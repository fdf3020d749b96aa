//! The documentation in WIT and the options in the policy file appear in the output for each
//! language.

use std::fs;
use thalweg_bindgen::{LANGUAGES, parse};

const WIT: &str = "/// Doc-1.
package a:b@0.1.0;

/// Doc-2.
interface i {
    /// Doc-3.
    ///
    /// Doc-4.
    record r {
        /// Doc-5.
        x: u8,
        /// Doc-6.
        y: string,
    }
    /// Doc-7.
    variant v {
        /// Doc-8.
        a,
        /// Doc-9.
        b(string),
    }
    /// Doc-10.
    enum e {
        /// Doc-11.
        c,
    }
    /// Doc-12.
    flags f {
        /// Doc-13.
        d,
    }
    /// Doc-14.
    type t = list<string>;
    /// Doc-15.
    variant w {
        /// Doc-16.
        k,
    }
    /// Doc-17.
    resource o {
        /// Doc-18.
        constructor();
        /// Doc-19.
        m: func(r: r, v: v, e: e, f: f, t: t) -> result<r, w>;
        /// Doc-20.
        s: static async func() -> stream<r>;
    }
    /// Doc-21.
    g: func() -> stream<u8>;
    /// Doc-22.
    h: async func();
}

/// Doc-23.
world z {
    export i;
}
";

const SAID: &str = "[i.g]\noverflow = \"drop-oldest\"\ncapacity = 64\ntimeout = \"2min\"\n[i.h]\ntimeout = \"1500ms\"\n";

#[test]
fn each_line_of_documentation_is_in_each_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("b.wit");
    fs::write(&path, WIT).expect("a file can be written");
    fs::write(folder.path().join("b.thalweg.toml"), SAID).expect("a file can be written");
    let package = parse(&path).unwrap_or_else(|refused| panic!("{refused}"));
    let mut lines: Vec<_> = (1..=23).map(|number| format!("Doc-{number}.")).collect();
    lines.push(
        "The stream holds 8192 unread records; when it is full, the writer waits.".to_owned(),
    );
    lines.push(
        "A call ends after 1.5s at the latest, even if the caller's deadline is later.".to_owned(),
    );
    lines.push(
        "A call and its streams end after 120s at the latest, even if the caller's deadline is later."
            .to_owned(),
    );
    lines.push("The stream holds 64 unread records; when it is full, the oldest records are dropped and counted.".to_owned());
    for language in LANGUAGES {
        let outputs = (language.emit)(&package).unwrap_or_else(|refused| panic!("{refused}"));
        let text: String = outputs.into_iter().map(|output| output.contents).collect();
        // A line may be wrapped.
        let words: Vec<_> = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "*" | "///" | "//!" | "#" | "##"))
            .collect();
        let text = words.join(" ");
        // A schema is of values, and a resource is none.
        let is_schema = matches!(language.name, "cddl" | "json-schema");
        let is_there = |line: &str| text.contains(line) || is_schema && line == "Doc-17.";
        let missing: Vec<_> = lines.iter().filter(|line| !is_there(line)).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", language.name);
    }
}
