//! Named commands (`[[named_commands]]`): command lines with typed arguments that the bundle defines.

use super::reader::{BundleError, BundleTable, SpannedText, join_alternatives, suggestion};
use std::collections::BTreeMap;

/// Maximum length, in bytes, of a text argument passed by a model.
const TEXT_BYTES: usize = 4096;
const NAME_LETTERS: usize = 64;
const KINDS: &[(&str, ArgumentKind)] = &[
    ("path", ArgumentKind::Path),
    ("input", ArgumentKind::Input),
    ("text", ArgumentKind::Text),
    ("integer", ArgumentKind::Integer),
];

/// A command that is offered to the model as a separate tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCommand {
    pub name: String,
    pub line: usize,
    pub description: String,
    /// Program and arguments. Each `{argument}` is replaced by the value of that argument.
    pub command: Vec<String>,
    pub arguments: BTreeMap<String, ArgumentKind>,
    pub requires_approval: bool,
    pub approval_line: usize,
    pub approval_rule: Option<String>,
}

/// Type of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A path that the command may read and write.
    Path,
    /// A path that the command only reads.
    Input,
    /// Text without control characters.
    Text,
    Integer,
    /// One of a fixed set of words.
    OneOf(Vec<String>),
}

impl ArgumentKind {
    /// Returns whether the argument is a path.
    pub fn is_path(&self) -> bool {
        matches!(self, Self::Path | Self::Input)
    }
}

impl NamedCommand {
    pub fn read_all(root: &BundleTable<'_>) -> Result<Vec<Self>, BundleError> {
        let mut all: Vec<Self> = Vec::new();
        for section in root.sections("named_commands")? {
            let command = Self::read(&section)?;
            if all.iter().any(|known| known.name.eq_ignore_ascii_case(&command.name)) {
                let message = format!("the named command `{}` is defined twice", command.name);
                return Err(section.source.error(&section.span, message));
            }
            all.push(command);
        }
        Ok(all)
    }

    fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&["name", "description", "command", "arguments", "requires_approval", "approval_rule"])?;
        let name = section.required_text("name")?;
        if !is_name(&name.text) {
            let message = format!(
                "`{}` is not a valid command name; expected a letter, then up to {} letters, digits, `_` or `-`",
                name.text,
                NAME_LETTERS - 1
            );
            return Err(section.source.error(&name.span, message));
        }
        let arguments = arguments(section)?;
        let command = parse_words(section, &arguments)?;
        Ok(Self {
            line: section.line(),
            description: section.text("description")?.map_or_else(|| format!("Runs `{}`.", command.join(" ")), |text| text.text),
            requires_approval: section.switch("requires_approval")?.unwrap_or(true),
            approval_line: section.line_number("requires_approval").unwrap_or_else(|| section.line()),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            name: name.text,
            command,
            arguments,
        })
    }

    /// Substitutes `values` for the arguments and returns the resulting command. The value of a path argument must be
    /// an absolute path without symlinks.
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
        if let Some(unknown) = values.keys().find(|name| !self.arguments.contains_key(*name)) {
            let known: Vec<&str> = self.arguments.keys().map(String::as_str).collect();
            return Err(format!("unknown argument `{unknown}`; {}", suggestion(unknown, &known)));
        }
        for (name, kind) in &self.arguments {
            let value = values.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
            kind.check(name, value)?;
        }
        self.command.iter().map(|word| fill_word(word, values)).collect()
    }

    /// Returns whether `argv` is a call of this command, whatever its argument values.
    pub fn fits(&self, argv: &[String]) -> bool {
        self.command.len() == argv.len() && self.command.iter().zip(argv).all(|(word, given)| fits(&split_word(word), given))
    }
}

impl ArgumentKind {
    fn check(&self, name: &str, value: &str) -> Result<(), String> {
        match self {
            Self::Path | Self::Input if value.is_empty() => Err(format!("`{name}` is empty; expected a path")),
            Self::Path | Self::Input => Ok(()),
            Self::Text if value.len() > TEXT_BYTES => {
                Err(format!("`{name}` is {} bytes; at most {TEXT_BYTES} are allowed", value.len()))
            }
            Self::Text if value.chars().any(char::is_control) => {
                Err(format!("`{name}` contains a control character; expected a single line of text"))
            }
            Self::Text => Ok(()),
            Self::Integer if value.parse::<i64>().is_ok() => Ok(()),
            Self::Integer => Err(format!("`{name}` is `{value}`; expected an integer")),
            Self::OneOf(choices) if choices.iter().any(|choice| choice == value) => Ok(()),
            Self::OneOf(choices) => {
                let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
                Err(format!("`{name}` is `{value}`; expected {}", join_alternatives(&choices)))
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_LETTERS
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
}

fn arguments(section: &BundleTable<'_>) -> Result<BTreeMap<String, ArgumentKind>, BundleError> {
    let mut arguments = BTreeMap::new();
    let Some(table) = section.section("arguments")? else { return Ok(arguments) };
    for key in table.table.keys() {
        let name = key.get_ref().to_string();
        if !is_name(&name) {
            return Err(section
                .source
                .error(&key.span(), format!("`{name}` is not a valid argument name; expected letters, digits and `_`")));
        }
        let kind =
            if table.is_text(&name) { table.choice(&name, &named_kinds())?.cloned() } else { parse_one_of(&table, &name)? };
        if let Some(kind) = kind {
            arguments.insert(name, kind);
        }
    }
    Ok(arguments)
}

fn named_kinds() -> Vec<(&'static str, &'static ArgumentKind)> {
    KINDS.iter().map(|(name, kind)| (*name, kind)).collect()
}

fn parse_one_of(table: &BundleTable<'_>, name: &str) -> Result<Option<ArgumentKind>, BundleError> {
    let Some(words) = table.texts(name)? else { return Ok(None) };
    if words.is_empty() {
        return Err(table.source.error(&table.span, format!("`{name}` has no choices")));
    }
    Ok(Some(ArgumentKind::OneOf(words.into_iter().map(|word| word.text).collect())))
}

fn parse_words(section: &BundleTable<'_>, arguments: &BTreeMap<String, ArgumentKind>) -> Result<Vec<String>, BundleError> {
    let Some(words) = section.texts("command")?.filter(|words| !words.is_empty()) else {
        return Err(section.source.error(&section.span, "[[named_commands]] has no `command`; expected an array of words"));
    };
    let known: Vec<&str> = arguments.keys().map(String::as_str).collect();
    let mut used = Vec::new();
    for (index, SpannedText { text, span }) in words.iter().enumerate() {
        if text.contains('\0') || (index == 0 && text.is_empty()) {
            return Err(section
                .source
                .error(span, "`command` contains an empty word or a NUL character; expected a program and its arguments"));
        }
        for piece in split_word(text) {
            let ArgumentPart::Argument(name) = piece else { continue };
            if index == 0 {
                return Err(section.source.error(span, "the program must be fixed; `{…}` is allowed only in its arguments"));
            }
            if !arguments.contains_key(name) {
                let message = format!("`{{{name}}}` is not in `arguments`; {}", suggestion(name, &known));
                return Err(section.source.error(span, message));
            }
            used.push(name);
        }
    }
    if let Some(unused) = known.iter().find(|name| !used.contains(name)) {
        let message = format!("the argument `{unused}` is not used in `command`; expected `{{{unused}}}`");
        return Err(section.source.error(&section.span, message));
    }
    Ok(words.into_iter().map(|word| word.text).collect())
}

/// Literal text or an argument, within one word of a command.
#[derive(Debug, PartialEq, Eq)]
enum ArgumentPart<'a> {
    Text(&'a str),
    Argument(&'a str),
}

/// Splits a word such as `--out={output}` into literal text and arguments. Other text in braces is literal.
fn split_word(word: &str) -> Vec<ArgumentPart<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut from) = (word, 0);
    while let Some(open) = rest[from..].find('{').map(|at| from + at) {
        let name = rest[open + 1..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
        let Some(name) = name else {
            from = open + 1;
            continue;
        };
        if open > 0 {
            found.push(ArgumentPart::Text(&rest[..open]));
        }
        found.push(ArgumentPart::Argument(name));
        (rest, from) = (&rest[open + name.len() + 2..], 0);
    }
    if !rest.is_empty() || found.is_empty() {
        found.push(ArgumentPart::Text(rest));
    }
    found
}

fn fill_word(word: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut whole = String::new();
    for piece in split_word(word) {
        match piece {
            ArgumentPart::Text(text) => whole.push_str(text),
            ArgumentPart::Argument(name) => {
                let value = values.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
                // The program would interpret such a value as one of its options.
                if whole.is_empty() && value.starts_with('-') {
                    return Err(format!("`{name}` starts with `-`, so the program would read it as an option"));
                }
                whole.push_str(value);
            }
        }
    }
    Ok(whole)
}

fn fits(pieces: &[ArgumentPart<'_>], given: &str) -> bool {
    match pieces {
        [] => given.is_empty(),
        [ArgumentPart::Text(text), rest @ ..] => given.strip_prefix(text).is_some_and(|after| fits(rest, after)),
        [ArgumentPart::Argument(_)] => true,
        [ArgumentPart::Argument(_), rest @ ..] => {
            given.char_indices().map(|(at, _)| at).chain([given.len()]).any(|at| fits(rest, &given[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(word: &str) -> String {
        format!("{:?}", split_word(word))
    }

    #[test]
    fn words_are_split_only_at_their_arguments() {
        assert_eq!(expand("--out={output}.x"), r#"[Text("--out="), Argument("output"), Text(".x")]"#);
        assert_eq!(expand("{a}{b}"), r#"[Argument("a"), Argument("b")]"#);
        assert_eq!(expand("{}{a b}{"), r#"[Text("{}{a b}{")]"#);
        assert_eq!(expand("{ {a}"), r#"[Text("{ "), Argument("a")]"#);
        assert_eq!(expand(""), r#"[Text("")]"#);
    }

    #[test]
    fn named_commands_match_only_their_own_command_line_and_validate_arguments() {
        let command = NamedCommand {
            name: "convert".to_owned(),
            line: 1,
            description: String::new(),
            command: ["IfcConvert", "--to={format}", "{input}"].map(str::to_owned).to_vec(),
            arguments: BTreeMap::from([
                ("format".to_owned(), ArgumentKind::OneOf(vec!["obj".to_owned()])),
                ("input".to_owned(), ArgumentKind::Input),
            ]),
            requires_approval: true,
            approval_line: 1,
            approval_rule: None,
        };
        let value = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let argv = command.fill(&BTreeMap::from([value("format", "obj"), value("input", "/w/a b")]));
        assert_eq!(argv, Ok(["IfcConvert", "--to=obj", "/w/a b"].map(str::to_owned).to_vec()));
        assert!(command.fits(&argv.unwrap_or_default()));
        assert!(!command.fits(&["IfcConvert", "--from=obj", "/w/a"].map(str::to_owned)));
        assert!(!command.fits(&["sh", "--to=obj", "/w/a"].map(str::to_owned)));
        for (format, input) in [("ifc", "/w/a"), ("obj", ""), ("obj", "-x")] {
            let told = command.fill(&BTreeMap::from([value("format", format), value("input", input)]));
            assert!(told.is_err(), "{format} {input}: {told:?}");
        }
        assert_eq!(command.fill(&BTreeMap::from([value("format", "obj")])), Err("`input` is missing".to_owned()));
    }
}
