//! The description of a package in the module of a guest.

use super::Emitter;
use crate::model::{OverflowPolicy, StreamOptions};
use crate::plan::Function;
use crate::plan::source::Source;

/// The bits of `tw_method.flags`.
const ASYNC: u32 = 1;
const IDEMPOTENT: u32 = 4;
const CBOR: u32 = 32;
const BRIEF: u32 = 64;

impl Emitter<'_> {
    /// Writes the description of the package.
    pub fn guest_package(&self, out: &mut Source) {
        let package = self.plan.package;
        self.descriptions("methods", &self.plan.functions, out);
        let imports = &self.plan.imports;
        if !imports.is_empty() {
            self.descriptions("hostImports", imports, out);
        }
        let policies: Vec<_> = self.plan.functions.iter().map(policy).collect();
        let has_policies = policies.iter().any(|policy| policy != DEFAULT_POLICY);
        if has_policies {
            let policies = policies.iter().map(|policy| format!("  {policy}"));
            out.append(&format!("var policies = [\n{}]\n", lines(policies)));
            out.blank();
        }
        let limits = &package.limits;
        out.template(
            "var package = GuestPackage(size: uint32(sizeof(GuestPackage)), flags: @flags@,
  package: \"@namespace@:@name@\", version: \"@version@\",
  methods: addr methods[0], @policies@methodCount: @count@,@imports@
  maxQueuedCalls: @calls@, maxQueuedBytes: @bytes@'u64)",
            &[
                ("flags", if limits.block_when_full { "1" } else { "0" }),
                (
                    "policies",
                    if has_policies {
                        "policies: addr policies[0], "
                    } else {
                        ""
                    },
                ),
                ("namespace", &package.namespace),
                ("name", &package.name),
                ("version", &package.version.to_string()),
                (
                    "imports",
                    &match imports.len() {
                        0 => String::new(),
                        count => {
                            format!("\n  imports: addr hostImports[0], importCount: {count},")
                        }
                    },
                ),
                ("count", &self.plan.functions.len().to_string()),
                ("calls", &limits.max_queued_calls.to_string()),
                ("bytes", &limits.max_queued_bytes.to_string()),
            ],
        );
        out.blank();
    }

    fn descriptions(&self, list: &str, functions: &[Function<'_>], out: &mut Source) {
        let functions = functions.iter().map(|function| {
            let of = &function.function.hashes;
            let hashes = [of.params, of.ok, of.error, of.element];
            let hashes = hashes.map(|hash| format!("{hash:#x}'u64")).join(", ");
            let types = self.plan.descriptions(function.function).join("\\n");
            let (name, flags) = (&function.function.full_name, flags(function));
            format!("  describe(\"{name}\", {hashes}, {flags},\n    \"{types}\")")
        });
        out.append(&format!("var {list} = [\n{}]\n", lines(functions)));
        out.blank();
    }
}

/// `tw_method.flags`.
fn flags(function: &Function<'_>) -> u32 {
    let options = &function.function.options;
    let bits = [
        (function.function.is_async, ASYNC),
        (options.is_idempotent, IDEMPOTENT),
        (options.is_cbor, CBOR),
        (options.is_brief, BRIEF),
    ];
    bits.iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, bit)| bit)
        .sum()
}

/// A policy without options.
const DEFAULT_POLICY: &str = "GuestPolicy()";

fn policy(function: &Function<'_>) -> String {
    let options = &function.function.options;
    let defaults = StreamOptions::DEFAULT;
    let stream = function.function.stream.unwrap_or(defaults);
    let overflow = match stream.overflow {
        OverflowPolicy::Latest => 1,
        OverflowPolicy::DropNewest => 2,
        OverflowPolicy::DropOldest => 3,
        OverflowPolicy::Fail => 4,
        _ => 0,
    };
    let unless = |value: u32, default: u32| {
        if value == default {
            0
        } else {
            u64::from(value)
        }
    };
    let fields = [
        ("noticeInterval", options.notice_interval_ns),
        ("timeout", options.timeout_ns),
        ("linger", stream.linger_ns),
        ("overflow", overflow),
        ("capacity", unless(stream.capacity, defaults.capacity)),
        (
            "maxRecordSize",
            unless(stream.max_record_size, defaults.max_record_size),
        ),
    ];
    let fields = fields.iter().filter(|(_, value)| *value != 0);
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    format!("GuestPolicy({})", fields.join(", "))
}

/// The items of an array, one in each line.
fn lines(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",\n") + "\n"
}
