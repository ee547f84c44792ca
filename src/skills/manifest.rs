//! Skill manifest (`SKILL.md`): its validated front matter, and its instructions.

use super::fault::Fault;
use super::front_matter::{FrontMatterEntry, FrontMatterValue, parse};
use crate::text::clean_line;

/// Maximum length of a skill name, in characters.
const NAME_CHARS: usize = 64;
/// Maximum length of a description, in characters.
const DESCRIPTION_CHARS: usize = 1024;
const HINT_CHARS: usize = 100;
/// Maximum number of entries in `allowed-tools`.
const MAX_TOOLS: usize = 100;

/// Informational keys, which have no effect.
const INFORMATIVE: &[&str] = &["license", "compatibility", "metadata", "version", "author", "tags"];
/// Keys defined by other agents, which have no effect in aye.
const OF_OTHERS: &[&str] = &[
    "model",
    "effort",
    "context",
    "agent",
    "hooks",
    "arguments",
    "when_to_use",
    "when-to-use",
    "paths",
    "shell",
    "mode",
    "tools",
    "disallowed-tools",
];

/// Skill as described by its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub name: String,
    /// One-line description without control characters.
    pub description: String,
    pub argument_hint: Option<String>,
    /// Tools that the skill needs; `None` if the file does not list any. While the skill is active, all other tools
    /// require approval.
    pub allowed_tools: Option<Vec<String>>,
    /// Whether the model may load the skill.
    pub for_model: bool,
    /// Whether the user may invoke the skill by name.
    pub for_user: bool,
    /// Instructions that follow the front matter.
    pub body: String,
}

/// Result of parsing a manifest.
#[derive(Debug, Default)]
pub(crate) struct ParsedManifest {
    /// Parsed manifest; `None` if there are errors.
    pub manifest: Option<Manifest>,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

/// Front matter fields read so far.
#[derive(Default)]
struct SkillFields {
    name: Option<(String, usize)>,
    description: Option<(String, usize)>,
    argument_hint: Option<String>,
    allowed_tools: Option<Vec<String>>,
    is_hidden_from_model: bool,
    is_hidden_from_user: bool,
    errors: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl Manifest {
    /// Parses a `SKILL.md`. `directory` is the name of the directory that contains it.
    pub(crate) fn read(directory: &str, bytes: &[u8]) -> ParsedManifest {
        let failed = |fault: Fault| ParsedManifest { errors: vec![fault], ..ParsedManifest::default() };
        if let Some(fault) = wrong_name(directory).map(Fault::general) {
            return failed(fault);
        }
        let Ok(text) = std::str::from_utf8(bytes) else {
            let line = bytes.utf8_chunks().next().map_or(1, |chunk| chunk.valid().matches('\n').count() + 1);
            return failed(Fault::at(line, "the file is not valid UTF-8"));
        };
        let document = match parse(text) {
            Ok(document) => document,
            Err(fault) => return failed(fault),
        };
        let mut fields = SkillFields::default();
        for entry in document.entries {
            fields.take(entry);
        }
        fields.finish(directory, document.body)
    }
}

impl SkillFields {
    fn take(&mut self, entry: FrontMatterEntry) {
        let line = entry.line;
        match entry.key.as_str() {
            "name" => self.name = self.line_of_text(entry).map(|text| (text, line)),
            "description" => self.description = self.line_of_text(entry).map(|text| (text, line)),
            "argument-hint" => self.take_hint(entry),
            "allowed-tools" => self.take_tools(entry),
            "disable-model-invocation" => self.is_hidden_from_model = self.flag(&entry).unwrap_or_default(),
            "user-invocable" => self.is_hidden_from_user = self.flag(&entry).is_some_and(|is_shown| !is_shown),
            key if INFORMATIVE.contains(&key) => {}
            key if OF_OTHERS.contains(&key) => self.warnings.push(Fault::at(line, format!("`{key}` has no effect in aye"))),
            key => self.warnings.push(Fault::at(line, format!("unknown key `{}`", key.escape_debug()))),
        }
    }

    /// Returns a key's text as a single line, or records an error if the value is not text.
    fn line_of_text(&mut self, entry: FrontMatterEntry) -> Option<String> {
        let FrontMatterValue::Text(text) = entry.value else {
            self.errors.push(Fault::at(entry.line, format!("`{}` must be text", entry.key)));
            return None;
        };
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn take_hint(&mut self, entry: FrontMatterEntry) {
        // In YAML, `[file]` without quotes is a list.
        let hint = match entry.value {
            FrontMatterValue::List(items) => format!("[{}]", items.join(", ")),
            FrontMatterValue::Text(text) => text,
            FrontMatterValue::Nested => return self.warnings.push(Fault::at(entry.line, "`argument-hint` must be text")),
        };
        let hint: String = clean_line(&hint).trim().chars().take(HINT_CHARS).collect();
        self.argument_hint = Some(hint).filter(|hint| !hint.is_empty());
    }

    fn take_tools(&mut self, entry: FrontMatterEntry) {
        let mut tools = match entry.value {
            FrontMatterValue::Text(text) => split_tools(&text),
            FrontMatterValue::List(items) => items.iter().flat_map(|item| split_tools(item)).collect(),
            FrontMatterValue::Nested => {
                self.errors.push(Fault::at(entry.line, "`allowed-tools` must be a list of names"));
                Vec::new()
            }
        };
        if tools.len() > MAX_TOOLS {
            self.errors.push(Fault::at(entry.line, format!("`allowed-tools` has more than {MAX_TOOLS} entries")));
        }
        tools.dedup();
        self.allowed_tools = Some(tools);
    }

    fn flag(&mut self, entry: &FrontMatterEntry) -> Option<bool> {
        let text = match &entry.value {
            FrontMatterValue::Text(text) => text.to_ascii_lowercase(),
            FrontMatterValue::List(_) | FrontMatterValue::Nested => String::new(),
        };
        match text.as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => {
                self.errors.push(Fault::at(entry.line, format!("`{}` must be true or false", entry.key)));
                None
            }
        }
    }

    fn finish(mut self, directory: &str, body: &str) -> ParsedManifest {
        let name = self.take_name(directory);
        let description = self.take_description();
        let body = body.trim().to_owned();
        if body.is_empty() {
            self.warnings.push(Fault::general("the skill has no instructions after its front matter"));
        }
        if self.is_hidden_from_model && self.is_hidden_from_user {
            let message = "neither the model nor the user can use the skill: `disable-model-invocation` and `user-invocable`";
            self.warnings.push(Fault::general(message));
        }
        let manifest = self.errors.is_empty().then_some(Manifest {
            name,
            description,
            argument_hint: self.argument_hint,
            allowed_tools: self.allowed_tools,
            for_model: !self.is_hidden_from_model,
            for_user: !self.is_hidden_from_user,
            body,
        });
        ParsedManifest { manifest, errors: self.errors, warnings: self.warnings }
    }

    /// Returns the skill's name, which is always the name of its directory. Many public skills have a different name
    /// in their front matter.
    fn take_name(&mut self, directory: &str) -> String {
        match self.name.take() {
            None => {
                let message = format!("`name` is missing; add `name: {directory}`");
                self.warnings.push(Fault::at(1, message));
            }
            Some((name, _)) if name == directory => {}
            Some((name, line)) => {
                if let Some(why) = wrong_name(&name) {
                    self.errors.push(Fault::at(line, why));
                } else {
                    let message =
                        format!("`name` is `{name}`, but the directory is `{directory}`; the skill is called `{directory}`");
                    self.warnings.push(Fault::at(line, message));
                }
            }
        }
        if let Some(why) = wrong_name(directory) {
            self.errors.push(Fault::general(why));
        }
        directory.to_owned()
    }

    fn take_description(&mut self) -> String {
        let Some((description, line)) = self.description.take() else {
            let message = "`description` is missing; say what the skill does and when to use it";
            self.errors.push(Fault::at(1, message));
            return String::new();
        };
        let length = description.chars().count();
        if description.is_empty() {
            self.errors.push(Fault::at(line, "`description` is empty; say what the skill does and when to use it"));
        } else if length > DESCRIPTION_CHARS {
            let message = format!("`description` has {length} characters; only the first {DESCRIPTION_CHARS} are used");
            self.warnings.push(Fault::at(line, message));
        }
        clean_line(&description.chars().take(DESCRIPTION_CHARS).collect::<String>())
    }
}

/// Returns a description of what is wrong with the name of a skill or plugin, or `None` if the name is valid.
pub(crate) fn wrong_name(name: &str) -> Option<String> {
    let shown = name.chars().take(NAME_CHARS).collect::<String>();
    let shown = shown.escape_debug();
    let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.is_empty() {
        Some("the name is empty".to_owned())
    } else if !name.chars().all(is_allowed) {
        Some(format!("the name `{shown}` may contain only lower-case letters a to z, digits and hyphens"))
    } else if name.len() > NAME_CHARS {
        Some(format!("the name `{shown}…` has {} characters; the limit is {NAME_CHARS}", name.len()))
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        Some(format!("the name `{shown}` must not begin or end with a hyphen, or contain two in a row"))
    } else {
        None
    }
}

/// Splits a list such as `Read, Bash(git log:*) Grep` at commas and spaces that are not within parentheses.
pub(crate) fn split_tools(text: &str) -> Vec<String> {
    let (mut tools, mut tool, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && (letter == ',' || letter.is_whitespace()) => {
                tools.push(std::mem::take(&mut tool));
                continue;
            }
            _ => {}
        }
        tool.push(letter);
    }
    tools.push(tool);
    tools.retain(|tool| !tool.is_empty());
    tools
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ParsedManifest {
        Manifest::read("pdf", text.as_bytes())
    }

    #[test]
    fn all_fields_of_a_skill_are_parsed() {
        let read = read(
            "---\nname: pdf\ndescription: >-\n  Fills in\n  forms: \u{1b}[31mred\nargument-hint: [file]\nallowed-tools: Read, Bash(git log:*) Grep\n\
             disable-model-invocation: true\nuser-invocable: true\nlicense: MIT\nmodel: opus\nfrobs: 1\nmetadata:\n  a: b\n---\n\n# Forms\n\nDo it.\n",
        );
        let manifest = read.manifest.unwrap();
        assert_eq!(manifest.description, "Fills in forms: red");
        assert_eq!(manifest.argument_hint.as_deref(), Some("[file]"));
        assert_eq!(manifest.allowed_tools.unwrap(), ["Read", "Bash(git log:*)", "Grep"]);
        assert_eq!((manifest.for_model, manifest.for_user), (false, true));
        assert_eq!(manifest.body, "# Forms\n\nDo it.");
        let warnings: Vec<String> = read.warnings.iter().map(|fault| fault.with_file("f")).collect();
        assert_eq!(warnings, ["f:11: `model` has no effect in aye", "f:12: unknown key `frobs`"]);
    }

    #[test]
    fn tool_lists_are_parsed_in_every_notation() {
        for (value, expected) in [
            ("Read Grep", vec!["Read", "Grep"]),
            ("\n  - Read\n  - Bash(npm run test:*)", vec!["Read", "Bash(npm run test:*)"]),
            ("[Read, Grep]", vec!["Read", "Grep"]),
            ("", vec![]),
        ] {
            let read = read(&format!("---\nname: pdf\ndescription: x\nallowed-tools: {value}\n---\nx"));
            assert_eq!(read.manifest.unwrap().allowed_tools.unwrap(), expected, "{value}");
        }
        assert!(read("---\nname: pdf\ndescription: x\n---\nx").manifest.unwrap().allowed_tools.is_none());
    }

    #[test]
    fn invalid_files_are_errors_with_line_and_reason() {
        for (header, part) in [
            ("name: pdf", "f:1: `description` is missing"),
            ("name: PDF\ndescription: x", "f:2: the name `PDF` may contain only lower-case"),
            ("name: \"a\\e[2Jb\"\ndescription: x", "f:2: the name `a\\u{1b}[2Jb` may contain only"),
            ("name: pdf\ndescription: ''", "f:3: `description` is empty"),
            ("name: pdf\ndescription: [x]", "f:3: `description` must be text"),
            ("name: pdf\ndescription: x\nuser-invocable: maybe", "f:4: `user-invocable` must be true or false"),
        ] {
            let read = read(&format!("---\n{header}\n---\nx"));
            let errors: Vec<String> = read.errors.iter().map(|fault| fault.with_file("f")).collect();
            assert!(read.manifest.is_none() && errors[0].starts_with(part), "{header}: {errors:?}");
        }
        let read = Manifest::read("pdf", b"---\nname: pdf\n\xff\n---\n");
        assert_eq!(read.errors[0].with_file("f"), "f:3: the file is not valid UTF-8");
    }

    #[test]
    fn a_skill_with_another_name_or_a_long_description_is_used_with_a_warning() {
        let long = "x".repeat(1025);
        for (header, part) in [
            ("description: x", "f:1: `name` is missing; add `name: pdf`"),
            ("name: other\ndescription: x", "f:2: `name` is `other`, but the directory is `pdf`; the skill is called `pdf`"),
            (&format!("name: pdf\ndescription: {long}"), "f:3: `description` has 1025 characters; only the first 1024 are used"),
        ] {
            let read = read(&format!("---\n{header}\n---\nx"));
            assert_eq!(read.warnings.iter().map(|fault| fault.with_file("f")).collect::<Vec<_>>(), [part], "{header}");
            let manifest = read.manifest.unwrap();
            assert_eq!((manifest.name.as_str(), manifest.description.len() <= 1024), ("pdf", true), "{header}");
        }
        let header = "---\nname: pdf\ndescription: x\n---\nx";
        assert!(Manifest::read("PDF tools", header.as_bytes()).manifest.is_none(), "a directory is named like a skill");
    }

    #[test]
    fn only_plain_names_are_accepted() {
        for name in ["pdf", "a-b-2", "7zip"] {
            assert_eq!(wrong_name(name), None);
        }
        let long = "x".repeat(65);
        for name in ["", "A", "ä", "a b", "a/b", "a\u{1b}[31m", "-a", "a-", "a--b", "..", &long] {
            assert!(wrong_name(name).is_some(), "{name:?}");
        }
        assert!(Manifest::read("a\u{1b}b", b"").errors[0].message.contains("`a\\u{1b}b`"));
    }
}
