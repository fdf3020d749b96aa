//! As much of JSON Schema as the emitter writes. A keyword that is not known is an error of the
//! test.

use serde_json::Value;
use thalweg_bindgen::{json_schema, model::Package};

pub struct Schema(Value);

impl Schema {
    pub fn of(package: &Package) -> Self {
        let outputs = json_schema::emit(package).expect("it has a form");
        Schema(serde_json::from_str(&outputs[0].contents).expect("JSON"))
    }

    /// `None`: there is no definition of this name.
    pub fn check(&self, name: &str, value: &Value) -> Option<Result<(), String>> {
        let schema = self.0["$defs"].get(name)?;
        Some(self.valid(schema, value))
    }

    fn valid(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            let is_allowed = schema.as_bool().expect("a schema");
            return holds(is_allowed, "false", value);
        };
        for (keyword, wanted) in keywords {
            self.keyword(schema, keyword, wanted, value)?;
        }
        Ok(())
    }

    fn keyword(
        &self,
        schema: &Value,
        keyword: &str,
        wanted: &Value,
        value: &Value,
    ) -> Result<(), String> {
        let length = || value.as_array().map_or(0, Vec::len) as u64;
        let letters = || value.as_str().map_or(0, |text| text.chars().count()) as u64;
        let is_good = match keyword {
            "description" => true,
            "type" => match wanted.as_str().expect("a type") {
                "null" => value.is_null(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64(),
                "string" => value.is_string(),
                "array" => value.is_array(),
                "object" => value.is_object(),
                other => panic!("type {other}"),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().expect("a list").contains(value),
            "minimum" => value.as_i64() >= wanted.as_i64(),
            "maximum" => value.as_i64() <= wanted.as_i64(),
            "minLength" => letters() >= wanted.as_u64().expect("a number"),
            "maxLength" => letters() <= wanted.as_u64().expect("a number"),
            "minItems" => length() >= wanted.as_u64().expect("a number"),
            "maxItems" => length() <= wanted.as_u64().expect("a number"),
            "pattern" => {
                let text = value.as_str().unwrap_or_default();
                is_like(wanted.as_str().expect("a pattern"), text)
            }
            "uniqueItems" => {
                let items = value.as_array().into_iter().flatten();
                let all: Vec<&Value> = items.collect();
                all.iter()
                    .enumerate()
                    .all(|(place, item)| !all[..place].contains(item))
            }
            "$ref" => {
                let name = wanted
                    .as_str()
                    .and_then(|path| path.strip_prefix("#/$defs/"));
                let schema = &self.0["$defs"][name.expect("a definition")];
                assert!(!schema.is_null(), "{wanted} is not defined");
                return self.valid(schema, value);
            }
            "oneOf" => {
                let choices = wanted.as_array().expect("a list").iter();
                choices
                    .filter(|choice| self.valid(choice, value).is_ok())
                    .count()
                    == 1
            }
            "prefixItems" => {
                let pairs = wanted.as_array().expect("a list").iter();
                let items = value.as_array().into_iter().flatten();
                for (schema, item) in pairs.zip(items) {
                    self.valid(schema, item)?;
                }
                true
            }
            "items" => {
                let before = schema["prefixItems"].as_array().map_or(0, Vec::len);
                for item in value.as_array().into_iter().flatten().skip(before) {
                    self.valid(wanted, item)?;
                }
                true
            }
            "required" => {
                let mut names = wanted.as_array().expect("a list").iter();
                names.all(|name| value.get(name.as_str().expect("a name")).is_some())
            }
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = wanted.get(name) {
                        self.valid(schema, value)?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let mut names = value.as_object().into_iter().flatten();
                let is_named = |name: &str| schema["properties"].get(name).is_some();
                wanted == &Value::Bool(true) || names.all(|(name, _)| is_named(name))
            }
            other => panic!("keyword {other}"),
        };
        holds(is_good, &format!("{keyword} {wanted}"), value)
    }
}

fn holds(is_good: bool, rule: &str, value: &Value) -> Result<(), String> {
    let text: String = value.to_string().chars().take(200).collect();
    is_good.then_some(()).ok_or(format!("{rule}: {text}"))
}

/// The patterns that are written, each by hand.
fn is_like(pattern: &str, text: &str) -> bool {
    let hex = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let decimal = |text: &str, most: usize| {
        let is_one = text.len() == 1 || !text.starts_with('0');
        (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) && is_one
    };
    let bits = |digits: usize| {
        let text = text.strip_prefix("0x");
        text.is_some_and(|text| text.len() == digits && hex(text))
    };
    match pattern {
        "^(0|[1-9][0-9]{0,19})$" => decimal(text, 20),
        "^(0|-?[1-9][0-9]{0,18})$" => {
            text != "-0" && decimal(text.strip_prefix('-').unwrap_or(text), 19)
        }
        "^0x[0-9a-f]{8}$" => bits(8),
        "^0x[0-9a-f]{16}$" => bits(16),
        "^([0-9a-f]{2})*$" => text.len().is_multiple_of(2) && hex(text),
        other => {
            let count = other
                .strip_prefix("^[0-9a-f]{")
                .and_then(|rest| rest.strip_suffix("}$"));
            let count = count.and_then(|count| count.parse().ok());
            let count: usize = count.unwrap_or_else(|| panic!("pattern {other}"));
            text.len() == count && hex(text)
        }
    }
}
