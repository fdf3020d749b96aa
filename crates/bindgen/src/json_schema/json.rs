//! A JSON writer. A value that fits on one line is written on one line.

/// The maximum length of a line in characters.
const WIDTH: usize = 120;

pub(super) enum Json {
    Text(String),
    Number(i64),
    Bool(bool),
    List(Vec<Json>),
    /// The members, in this order.
    Object(Vec<(String, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::Text(text.to_owned())
    }
}

impl Json {
    pub(super) fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Self {
        let members = members.into_iter();
        Json::Object(
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// An object whose first member is its description, if it has one.
    pub(super) fn with_docs(self, docs: &str) -> Self {
        match self {
            Json::Object(mut members) if !docs.is_empty() => {
                members.insert(0, ("description".to_owned(), docs.into()));
                Json::Object(members)
            }
            other => other,
        }
    }

    /// The text, which ends in a newline.
    pub(super) fn write(&self) -> String {
        let mut out = String::new();
        self.lines("\n", 0, &mut out);
        out.push('\n');
        out
    }

    /// The text on one line.
    fn flat(&self) -> String {
        match self {
            Json::Text(text) => quoted(text),
            Json::Number(number) => number.to_string(),
            Json::Bool(value) => value.to_string(),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(Json::flat).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Object(members) => {
                let members = members.iter();
                let members: Vec<String> = members
                    .map(|(name, value)| format!("{}: {}", quoted(name), value.flat()))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    /// `indent` is a newline and the spaces of this level. `before` is the number of characters
    /// that are already on the line.
    fn lines(&self, indent: &str, before: usize, out: &mut String) {
        let flat = self.flat();
        let is_short = indent.len() + before + flat.chars().count() <= WIDTH;
        let deeper = format!("{indent}  ");
        match self {
            Json::List(items) if !is_short => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    out.push_str(&deeper);
                    item.lines(&deeper, 0, out);
                }
                out.push_str(indent);
                out.push(']');
            }
            Json::Object(members) if !is_short => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    out.push_str(&deeper);
                    let name = format!("{}: ", quoted(name));
                    out.push_str(&name);
                    value.lines(&deeper, name.chars().count(), out);
                }
                out.push_str(indent);
                out.push('}');
            }
            _ => out.push_str(&flat),
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
