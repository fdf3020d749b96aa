//! Text as `ruff format` leaves it: 88 columns, and one element a line with a trailing comma where they do not fit.

use super::plan::Plan;

/// Ruff's default.
const WIDTH: usize = 88;

/// An expression, or a piece of a statement, that knows how to span lines.
pub(super) enum Doc {
    /// What never spans lines.
    Text(String),
    /// `open a, b close`.
    Group {
        open: String,
        items: Vec<Doc>,
        close: &'static str,
    },
    /// `(a, b)`; of one, `(a,)`.
    Tuple(Vec<Doc>),
}

impl From<&str> for Doc {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Doc {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Doc {
    /// `head(items)`.
    pub(super) fn call(head: &str, items: Vec<Doc>) -> Self {
        Self::Group {
            open: format!("{head}("),
            items,
            close: ")",
        }
    }

    /// On one line.
    pub(super) fn flat(&self) -> String {
        let join = |items: &[Doc]| items.iter().map(Self::flat).collect::<Vec<_>>().join(", ");
        match self {
            Self::Text(text) => text.clone(),
            Self::Group { open, items, close } => format!("{open}{}{close}", join(items)),
            Self::Tuple(items) if items.len() == 1 => format!("({},)", join(items)),
            Self::Tuple(items) => format!("({})", join(items)),
        }
    }

    /// For a line whose first `before` columns are taken and which ends in `after` more; the lines that follow are for a
    /// statement `indent` levels in.
    fn render(&self, indent: usize, before: usize, after: usize) -> String {
        let flat = self.flat();
        if before + flat.chars().count() + after <= WIDTH {
            return flat;
        }
        let (open, items, close) = match self {
            Self::Text(text) => return text.clone(),
            Self::Group { open, items, close } => (open.as_str(), items, *close),
            Self::Tuple(items) => ("(", items, ")"),
        };
        let mut text = format!("{open}\n");
        for item in items {
            let item = item.render(indent + 1, (indent + 1) * 4, 1);
            text.push_str(&"    ".repeat(indent + 1));
            text.push_str(&item);
            text.push_str(",\n");
        }
        text.push_str(&"    ".repeat(indent));
        text.push_str(close);
        text
    }
}

/// `) -> A[b, c]:` as `) -> A[`, what stands between, and `]:`; `None` where the result's type has no two arguments.
fn arguments(close: &str) -> Option<(&str, Vec<&str>, &str)> {
    let start = close.find('[')? + 1;
    let end = close.strip_suffix("]:")?.len();
    let (mut arguments, mut depth, mut from) = (Vec::new(), 0_i32, start);
    for (at, letter) in close[start..end].char_indices() {
        match letter {
            '[' => depth += 1,
            // Then what is last in it is no argument of what is first.
            ']' if depth == 0 => return None,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(&close[from..start + at]);
                from = start + at + ", ".len();
            }
            _ => {}
        }
    }
    let is_list = !arguments.is_empty();
    arguments.push(&close[from..end]);
    is_list.then(|| (&close[..start], arguments, &close[end..]))
}

/// A file that is being written.
pub(super) struct Source(String);

impl Source {
    /// A file with the header that generated code bears.
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        Self(format!(
            "# Written by `thalweg gen` from {}. Do not edit.\n",
            plan.id()
        ))
    }

    /// The text, ending in one newline.
    pub(super) fn finish(self) -> String {
        format!("{}\n", self.0.trim_end())
    }

    /// A line, `indent` levels in.
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        self.0.push_str(&"    ".repeat(indent));
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// An empty line.
    pub(super) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Two empty lines: what stands between definitions of a module.
    pub(super) fn gap(&mut self) {
        self.0.push_str("\n\n");
    }

    /// A statement of one expression.
    pub(super) fn statement(&mut self, indent: usize, doc: &Doc) {
        let text = doc.render(indent, indent * 4, 0);
        self.line(indent, &text);
    }

    /// `name: annotation = value`. The value spans lines first, and the annotation too where that is not enough.
    pub(super) fn assign(&mut self, name: &str, annotation: Option<Doc>, value: &Doc) {
        self.assign_in(0, name, annotation, value);
    }

    /// As [`Source::assign`], `indent` levels in.
    pub(super) fn assign_in(
        &mut self,
        indent: usize,
        name: &str,
        annotation: Option<Doc>,
        value: &Doc,
    ) {
        let mut head = name.to_owned();
        if let Some(annotation) = annotation {
            let opening = match value {
                Doc::Group { open, .. } => open.chars().count(),
                _ => value.flat().chars().count(),
            };
            head.push_str(": ");
            let before = indent * 4 + head.len();
            head.push_str(&annotation.render(indent, before, " = ".len() + opening));
        }
        head.push_str(" = ");
        let last_line = head.lines().last().map_or(0, |line| line.chars().count());
        let before = if head.contains('\n') {
            last_line
        } else {
            indent * 4 + last_line
        };
        head.push_str(&value.render(indent, before, 0));
        self.line(indent, &head);
    }

    /// The head of a function: `def name(a, b) -> result:`.
    pub(super) fn definition(
        &mut self,
        indent: usize,
        open: &str,
        parameters: Vec<Doc>,
        close: &str,
    ) {
        let flat: Vec<String> = parameters.iter().map(Doc::flat).collect();
        let flat = format!("{open}{}{close}", flat.join(", "));
        if indent * 4 + flat.chars().count() <= WIDTH {
            self.line(indent, &flat);
            return;
        }
        let width = close.chars().count();
        self.line(indent, open);
        for parameter in parameters {
            self.line(indent + 1, &format!("{},", parameter.flat()));
        }
        match arguments(close) {
            Some((open, arguments, close)) if indent * 4 + width > WIDTH => {
                self.line(indent, open);
                for argument in arguments {
                    self.line(indent + 1, &format!("{argument},"));
                }
                self.line(indent, close);
            }
            _ => self.line(indent, close),
        }
    }

    /// Where the next text goes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What was written from `start` on, for [`Source::append`] to another.
    pub(super) fn tail(self, start: usize) -> String {
        self.0[start..].to_owned()
    }

    /// Adds a text that was written apart.
    pub(super) fn append(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// `docs` as a docstring; nothing where they are empty.
    pub(super) fn docstring(&mut self, indent: usize, docs: &str) {
        let docs = docs.trim().replace("\"\"\"", "'''");
        let lines: Vec<&str> = docs.lines().map(str::trim_end).collect();
        let Some(last) = lines.last() else { return };
        let raw = if docs.contains('\\') { "r" } else { "" };
        if lines.len() == 1 {
            // What would run into the closing quotes is kept apart.
            let space = if last.ends_with(['"', '\\']) { " " } else { "" };
            self.line(indent, &format!("{raw}\"\"\"{last}{space}\"\"\""));
            return;
        }
        for (place, line) in lines.iter().enumerate() {
            match (place, line.is_empty()) {
                (0, _) => self.line(indent, &format!("{raw}\"\"\"{line}")),
                (_, true) => self.blank(),
                (_, false) => self.line(indent, line),
            }
        }
        self.line(indent, "\"\"\"");
    }

    /// `from MODULE import names`; nothing where there are none.
    pub(super) fn import(&mut self, module: &str, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let mut names = names.to_vec();
        names.sort_unstable();
        let flat = format!("from {module} import {}", names.join(", "));
        if flat.len() <= WIDTH {
            self.line(0, &flat);
        } else {
            let items = names.into_iter().map(Doc::from).collect();
            self.statement(0, &Doc::call(&format!("from {module} import "), items));
        }
    }

    /// `NAME: TypeAlias = a | b`.
    pub(super) fn union(&mut self, name: &str, parts: &[String]) {
        let head = format!("{name}: TypeAlias = ");
        let flat = parts.join(" | ");
        if head.len() + flat.len() <= WIDTH {
            self.line(0, &format!("{head}{flat}"));
            return;
        }
        self.line(0, &format!("{head}("));
        if flat.len() + 4 <= WIDTH {
            self.line(1, &flat);
        } else {
            for (place, part) in parts.iter().enumerate() {
                self.line(1, &format!("{}{part}", if place == 0 { "" } else { "| " }));
            }
        }
        self.line(0, ")");
    }
}
