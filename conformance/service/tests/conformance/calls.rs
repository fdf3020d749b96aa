//! The functions by name, with the types that Rust must know at compile time.

use crate::Runner;
use crate::endings::{Called, Verdict, check_bytes, ended, expect, finish};
use crate::streams::read;
use crate::values::{Json, same};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use thalweg::port::Owned;
use thalweg::wire::Encode;
use thalweg_conformance::conformance::*;

/// A function that returns its parameter. `v` is the value, and the expression after `=` is the
/// argument of the client.
macro_rules! echoes {
    ($name:ident, $step:ident, $client:ident, $v:ident; $($function:ident: $ty:ty = $given:expr,)*) => {
        $(if $name == stringify!($function).replace('_', "-") {
            let $v = <$ty>::read(&$step["params"][0]);
            let method = method($name);
            check_bytes($step, "arguments", &(&$v,), PACKAGE.methods[method].params)?;
            return finish($step, method, $client.$function($given), move |_, came| compare($step, method, came));
        })*
    };
}

pub(crate) fn compare<T: Json + Encode>(step: &'static Value, method: usize, came: T) -> Verdict {
    expect(
        "ok",
        came.show(),
        step.get("ok").is_none_or(|expected| same(&came, expected)),
    )?;
    check_bytes(step, "reply", &came, PACKAGE.methods[method].ok)
}

fn keep<R>(kept: &mut HashMap<String, R>, name: &str, made: R) -> Verdict {
    kept.insert(name.to_owned(), made);
    Ok(())
}

/// The name of the resource that is parameter `i`.
pub(crate) fn resource(step: &'static Value, i: usize) -> &'static str {
    step["params"][i]["resource"]
        .as_str()
        .expect("a resource's name")
}

/// The number of a function.
fn method(name: &str) -> usize {
    let full = format!("conformance.{name}");
    PACKAGE
        .methods
        .iter()
        .position(|method| method.name == full)
        .unwrap_or_else(|| panic!("no function {name}"))
}

impl Runner {
    /// Takes the stored counter of this name.
    fn counter_of(&mut self, json: &Value) -> Owned<CounterClient> {
        let name = json["resource"].as_str().expect("a resource's name");
        let counter = self.counters.remove(name);
        counter.expect("a counter of this name").into()
    }

    /// Makes the call of a step.
    pub(crate) fn call(&mut self, step: &'static Value) -> Result<Called, String> {
        let name = step["call"].as_str().expect("a function's name");
        let timeout = step["timeout_ms"]
            .as_u64()
            .map_or(Duration::MAX, Duration::from_millis);
        let c = if timeout < Duration::MAX {
            self.client.with_timeout(timeout)
        } else {
            self.client.clone()
        };
        echoes!(name, step, c, v;
            echo_bool: bool = v, echo_u8: u8 = v, echo_u16: u16 = v, echo_u32: u32 = v, echo_u64: u64 = v,
            echo_s8: i8 = v, echo_s16: i16 = v, echo_s32: i32 = v, echo_s64: i64 = v, echo_f32: f32 = v,
            echo_f64: f64 = v, echo_char: char = v, echo_string: String = &v, echo_bytes: Vec<u8> = &v,
            echo_bools: Vec<bool> = &v, echo_numbers: Vec<i64> = &v, echo_floats: Vec<f64> = &v,
            echo_strings: Vec<String> = &v, echo_grid: Vec<Vec<i32>> = &v, echo_points: Vec<Point> = &v,
            echo_option: Option<String> = &v, echo_option_twice: Option<Option<u32>> = v,
            echo_result: (Result<u64, String>,) = &v, echo_result_ok: Vec<Result<u32, ()>> = &v,
            echo_result_error: Vec<Result<(), String>> = &v, echo_result_bare: Vec<Result<(), ()>> = &v,
            echo_tuple: (u8, String, f64, Option<char>) = &v, echo_point: Point = v, echo_spot: Point = v,
            echo_scalars: Scalars = v, echo_nested: Nested = &v, echo_keywords: Keywords = &v, echo_shape: Shape = &v,
            echo_shapes: Vec<Shape> = &v, echo_color: Color = v, echo_colors: Vec<Color> = &v, echo_rights: Rights = v,
            echo_days: Days = v, echo_wide: Wide = v, echo_names: Vec<String> = &v, echo_failure: Failure = &v,
            echo_key: [u8; 16] = v, echo_three: [i64; 3] = v, echo_fixed: Fixed = &v, echo_keys: Vec<[u8; 2]> = &v,
        );

        let method = method(name);
        let number = |i: usize| u64::read(&step["params"][i]);
        let text = || String::read(&step["params"][0]);
        let failure = || Option::<Failure>::read(&step["params"][0]);
        let counter = |i: usize| &self.counters[resource(step, i)];
        let bind = step["bind"].as_str().unwrap_or_default();
        match name {
            "several" => {
                let (a, b, l, o) = <(u8, String, Vec<u16>, Option<Point>)>::read(&step["params"]);
                finish(step, method, c.several(a, &b, &l, o), move |_, came| {
                    compare(step, method, came)
                })
            }
            "many" => {
                let at = |i: usize| &step["params"][i];
                let (f, l) = (String::read(at(5)), Option::<String>::read(at(11)));
                let sum = c.many(
                    Json::read(at(0)),
                    Json::read(at(1)),
                    Json::read(at(2)),
                    number(3),
                    Json::read(at(4)),
                    &f,
                    Json::read(at(6)),
                    Json::read(at(7)),
                    &Vec::read(at(8)),
                    number(9),
                    Json::read(at(10)),
                    &l,
                    counter(12),
                    Json::read(at(13)),
                );
                finish(step, method, sum, move |_, came| {
                    compare(step, method, came)
                })
            }
            "later" => {
                let milliseconds = u32::read(&step["params"][0]);
                let text = String::read(&step["params"][1]);
                finish(
                    step,
                    method,
                    c.later(milliseconds, &text),
                    move |_, future| read(step, future.into_stream()),
                )
            }
            "never-comes" => {
                let message = Option::<String>::read(&step["params"][0]);
                finish(step, method, c.never_comes(&message), move |_, future| {
                    read(step, future.into_stream())
                })
            }
            "give-counters" => {
                let count = u32::read(&step["params"][1]);
                finish(step, method, c.give_counters(number(0), count), |_, _| {
                    Ok(())
                })
            }
            "total" => {
                let given = step["params"][0].as_array().expect("a list");
                let given: Vec<_> = given.iter().map(|json| self.counter_of(json)).collect();
                finish(step, method, c.total(&given), move |_, came| {
                    compare(step, method, came)
                })
            }
            "first-of" => {
                let given = step["params"][0]
                    .get("some")
                    .map(|json| self.counter_of(json));
                finish(step, method, c.first_of(&given), move |_, came| {
                    compare(step, method, came)
                })
            }
            "swap" => {
                let pair = &step["params"][0];
                let pair = Pair {
                    name: String::read(&pair["name"]),
                    left: self.counter_of(&pair["left"]),
                    right: pair["right"].get("some").map(|json| self.counter_of(json)),
                };
                finish(step, method, c.swap(&pair), |_, _| Ok(()))
            }
            "refuse" => {
                let several = step["params"][0]["value"].as_array();
                let given = several.map_or(MaybeCounter::No, |list| {
                    MaybeCounter::Several(list.iter().map(|json| self.counter_of(json)).collect())
                });
                finish(step, method, c.refuse(&given), |_, ()| Ok(()))
            }
            "[constructor]scale" => {
                finish(step, method, c.scale(number(0)), move |runner, made| {
                    keep(&mut runner.scales, bind, made)
                })
            }
            "[method]scale.apply" => {
                let product = self.scales[resource(step, 0)].apply(counter(1));
                finish(step, method, product, move |runner, made| {
                    keep(&mut runner.counters, bind, made)
                })
            }
            "nothing" => finish(step, method, c.nothing(), move |_, came| {
                compare(step, method, came)
            }),
            "count" => finish(
                step,
                method,
                c.count(number(0), number(1)),
                move |runner, stream| runner.take(step, stream),
            ),
            "items" => finish(step, method, c.items(number(0)), move |_, stream| {
                read(step, stream)
            }),
            "stops" => {
                let how = String::read(&step["params"][1]);
                finish(step, method, c.stops(number(0), &how), move |_, stream| {
                    read(step, stream)
                })
            }
            "rows-of" => {
                let size = u32::read(&step["params"][1]);
                let count = u32::read(&step["params"][0]);
                finish(step, method, c.rows_of(count, size), move |_, stream| {
                    read(step, stream)
                })
            }
            "doze" => {
                let milliseconds = u32::read(&step["params"][0]);
                finish(step, method, c.doze(milliseconds), move |_, came| {
                    compare(step, method, came)
                })
            }
            "fails-to-come" => {
                let code = u32::read(&step["params"][0]);
                finish(step, method, c.fails_to_come(code), move |_, future| {
                    read(step, future.into_stream())
                })
            }
            "latest" => finish(step, method, c.latest(number(0)), move |runner, stream| {
                runner.take(step, stream)
            }),
            "breaks" => finish(step, method, c.breaks(number(0)), move |runner, stream| {
                runner.take(step, stream)
            }),
            "endless" => finish(step, method, c.endless(), move |runner, stream| {
                runner.take(step, stream)
            }),
            "ticks" => finish(step, method, c.ticks(), move |runner, stream| {
                runner.take(step, stream)
            }),
            "drops-newest" => finish(
                step,
                method,
                c.drops_newest(number(0)),
                move |runner, stream| runner.take(step, stream),
            ),
            "drops-oldest" => finish(
                step,
                method,
                c.drops_oldest(number(0)),
                move |runner, stream| runner.take(step, stream),
            ),
            "refuses" => finish(step, method, c.refuses(number(0)), move |runner, stream| {
                runner.take(step, stream)
            }),
            "tick" => {
                let count = u32::read(&step["params"][0]);
                finish(step, method, c.tick(count), move |_, came| {
                    compare(step, method, came)
                })
            }
            "mark" => finish(step, method, c.mark(number(0)), move |_, came| {
                compare(step, method, came)
            }),
            "end-ticks" => finish(step, method, c.end_ticks(), move |_, came| {
                compare(step, method, came)
            }),
            "waiting" => finish(step, method, c.waiting(), move |_, came| {
                compare(step, method, came)
            }),
            "shapes" => {
                let count = u32::read(&step["params"][0]);
                finish(step, method, c.shapes(count), move |_, stream| {
                    read(step, stream)
                })
            }
            "looked-up" => finish(step, method, c.looked_up(number(0)), move |_, stream| {
                read(step, stream)
            }),
            "running" => finish(step, method, c.running(), move |_, came| {
                compare(step, method, came)
            }),
            "counters" => finish(step, method, c.counters(), move |_, came| {
                compare(step, method, came)
            }),
            "fail" => finish(step, method, c.fail(&failure()), move |_, came| {
                compare(step, method, came)
            }),
            "fail-later" => finish(step, method, c.fail_later(&failure()), move |_, came| {
                compare(step, method, came)
            }),
            "fail-bare" => {
                let fails = bool::read(&step["params"][0]);
                finish(step, method, c.fail_bare(fails), move |_, came| {
                    compare(step, method, came)
                })
            }
            "panic" => finish(step, method, c.panic(&text()), move |_, came| {
                compare(step, method, came)
            }),
            "panic-later" => finish(step, method, c.panic_later(&text()), move |_, came| {
                compare(step, method, came)
            }),
            "never" => finish(step, method, c.never(), move |_, came| {
                compare(step, method, came)
            }),
            "sleep" => {
                let ms = u32::read(&step["params"][0]);
                finish(step, method, c.sleep(ms), move |_, came| {
                    compare(step, method, came)
                })
            }
            "[constructor]counter" => {
                let start = number(0);
                finish(step, method, c.counter(start), move |runner, made| {
                    keep(&mut runner.counters, bind, made)
                })
            }
            "[method]counter.add" => {
                finish(step, method, counter(0).add(number(1)), move |_, came| {
                    compare(step, method, came)
                })
            }
            "[method]counter.value" => finish(step, method, counter(0).value(), move |_, came| {
                compare(step, method, came)
            }),
            "[method]counter.value-later" => {
                finish(step, method, counter(0).value_later(), move |_, came| {
                    compare(step, method, came)
                })
            }
            "[method]counter.steps" => {
                let count = u32::read(&step["params"][1]);
                finish(
                    step,
                    method,
                    counter(0).steps(count),
                    move |runner, stream| runner.take(step, stream),
                )
            }
            "[static]counter.sum" => {
                let sum = c.counter_sum(counter(0), counter(1));
                finish(step, method, sum, move |runner, made| {
                    keep(&mut runner.counters, bind, made)
                })
            }
            "[static]counter.finish" => {
                let given = self
                    .counters
                    .remove(resource(step, 0))
                    .expect("a counter of this name");
                finish(step, method, c.counter_finish(given), move |_, came| {
                    compare(step, method, came)
                })
            }
            "[constructor]even" => {
                let value = u32::read(&step["params"][0]);
                finish(step, method, c.even(value), move |runner, made| {
                    keep(&mut runner.evens, bind, made)
                })
            }
            "[method]even.half" => {
                let half = self.evens[resource(step, 0)].half();
                finish(step, method, half, move |_, came| {
                    compare(step, method, came)
                })
            }
            "[constructor]lease" => {
                let ms = u32::read(&step["params"][0]);
                finish(step, method, c.lease(ms), move |runner, made| {
                    keep(&mut runner.leases, bind, made)
                })
            }
            "[method]lease.ms" => {
                let ms = self.leases[resource(step, 0)].ms();
                finish(step, method, ms, move |_, came| compare(step, method, came))
            }
            "[destructor]lease" => {
                let lease = self.leases.remove(resource(step, 0));
                let ended = lease.expect("a lease of this name").destroy();
                finish(step, method, ended, move |_, came| {
                    compare(step, method, came)
                })
            }
            "leases" => finish(step, method, c.leases(), move |_, came| {
                compare(step, method, came)
            }),
            "twice" => {
                let value = u32::read(&step["params"][0]);
                ended(step, method, c.twice(value), move |_, came| {
                    compare(step, method, came)
                })
            }
            "ask" => finish(step, method, c.ask(number(0)), move |_, came| {
                compare(step, method, came)
            }),
            "ask-later" => finish(step, method, c.ask_later(number(0)), move |_, came| {
                compare(step, method, came)
            }),
            "tell" => {
                let (words, at) = <(Vec<String>, Option<u32>)>::read(&step["params"]);
                finish(step, method, c.tell(&words, at), move |_, came| {
                    compare(step, method, came)
                })
            }
            "fail-here" => ended(step, method, c.fail_here(&failure()), move |_, came| {
                compare(step, method, came)
            }),
            "panic-here" => ended(step, method, c.panic_here(&text()), move |_, came| {
                compare(step, method, came)
            }),
            other => self.call_with_streams(&c, step, method, other),
        }
    }
}
