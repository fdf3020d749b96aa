//! A writer for generated code.

/// The text of a file.
pub struct Source(pub String);

impl Source {
    /// Writes a line.
    pub fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Writes lines in which `@key@` stands for its value, and a blank line after them.
    pub fn template(&mut self, template: &str, values: &[(&str, &str)]) {
        let mut text = template.to_owned();
        for (key, value) in values {
            text = text.replace(&format!("@{key}@"), value);
        }
        self.line(&text);
        self.line("");
    }

    /// Writes a function with this head and body.
    pub fn function(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(&format!("static inline {head} {{"));
        body(self);
        self.line("}\n");
    }
}
