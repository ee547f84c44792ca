//! Command rules in a bundle, and how they match the words of a command.

use super::approve::{APPROVES, Approve};
use super::reader::{BundleError, BundleTable, SpannedText};
use crate::policy::git::without_messages;
use crate::policy::host_access::{never_reaches, parse_host};
use crate::policy::shell::options::harmless_globals;
use crate::policy::shell::{Arg, base, pattern};
use crate::protocol::SandboxAccess;
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleDecision {
    Allow,
    Ask,
    Deny,
}

pub(crate) const DECISIONS: &[(&str, RuleDecision)] =
    &[("allow", RuleDecision::Allow), ("ask", RuleDecision::Ask), ("deny", RuleDecision::Deny)];

/// Reads the decision of a rule, which is required.
pub(crate) fn decision(section: &BundleTable<'_>) -> Result<RuleDecision, BundleError> {
    let missing = || section.source.error(&section.span, "the rule has no `decision`; expected allow, ask or deny");
    section.choice("decision", DECISIONS)?.ok_or_else(missing)
}

/// Reads the example commands or paths of a rule, with their line numbers.
pub(crate) fn examples(section: &BundleTable<'_>, key: &str) -> Result<Vec<(String, usize)>, BundleError> {
    let texts = section.texts(key)?.unwrap_or_default();
    Ok(texts.into_iter().map(|text| (text.text, section.source.line(&text.span))).collect())
}

/// An entry in `blocked_commands` or `allowed_commands`: a program, and words that must all occur in its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramPattern {
    pub text: String,
    pub line: usize,
    pub(super) program: String,
    pub(super) words: Vec<String>,
}

/// A rule in `[[capabilities."Shell.Exec".rules]]`.
#[derive(Debug, Clone)]
pub struct Rule {
    pub line: usize,
    pub decision: RuleDecision,
    /// Subject of the approval if this is an ask rule: the command or its effects.
    pub approve: Approve,
    pub reason: String,
    /// Whether the rule matches only a command that consists of exactly these words, with no further arguments.
    pub exact: bool,
    /// Whether an allow rule also permits options that are not in the option table.
    pub any_args: bool,
    /// Whether an allow rule also permits a commit message, but no other additional argument.
    pub message: bool,
    /// Whether an allow rule applies only when the command runs in a copy of the workspace. Its effects are then
    /// approved or rejected.
    pub sandboxed: bool,
    /// Hosts that the command may connect to without a prompt when it runs in a copy of the workspace.
    pub hosts: Vec<SandboxAccess>,
    pub expires_at: Option<Timestamp>,
    /// Example commands that the rule must match or must not match, each with its line.
    pub matches: Vec<(String, usize)>,
    pub not_matches: Vec<(String, usize)>,
    pub(super) elements: Vec<Vec<String>>,
}

impl Rule {
    /// Returns whether the rule can match any command of the program `name`.
    pub fn is_about(&self, name: &str) -> bool {
        self.elements.first().is_some_and(|names| names.iter().any(|one| one == name || pattern::matches(one, name)))
    }

    pub fn read(section: &BundleTable<'_>) -> Result<Self, BundleError> {
        section.only(&[
            "command",
            "exact",
            "decision",
            "approve",
            "reason",
            "match",
            "not_match",
            "args",
            "sandboxed",
            "hosts",
            "expires_at",
        ])?;
        let Some(elements) = section.alternatives("command")?.filter(|elements| !elements.is_empty()) else {
            return Err(section
                .source
                .error(&section.span, "the rule has no `command`; expected an array such as [\"git\", \"status\"]"));
        };
        let decision = decision(section)?;
        let sandboxed = section.switch("sandboxed")?.unwrap_or(false);
        if sandboxed && decision != RuleDecision::Allow {
            return Err(section.error_at("sandboxed", "`sandboxed` is allowed only in a rule with `decision = \"allow\"`"));
        }
        let hosts = hosts(section, sandboxed, &elements)?;
        let is_name = |name: &str| !name.is_empty() && (!name.contains('/') || sandboxed && is_local(name));
        if let Some(path) = elements[0].iter().find(|name| !is_name(&name.text)) {
            let or = if sandboxed { " or `./gradlew`" } else { "" };
            let message = format!("`{}` is not a bare program name; expected one such as `git`{or}", path.text);
            return Err(section.source.error(&path.span, message));
        }
        let exact = section.switch("exact")?.unwrap_or(false);
        let approve = section.choice("approve", APPROVES)?;
        if approve.is_some() && decision != RuleDecision::Ask {
            let message = "`approve` is allowed only in a rule with `decision = \"ask\"`";
            return Err(section.source.error(&section.span, message));
        }
        let args = section.choice("args", &[("any", Args::Any), ("table", Args::Table), ("message", Args::Message)])?;
        let message = args == Some(Args::Message);
        let starts_with = |at: usize, word: &str| elements.get(at).is_some_and(|words| words.len() == 1 && words[0].text == word);
        if message && (decision != RuleDecision::Allow || exact || !(starts_with(0, "git") && starts_with(1, "commit"))) {
            let expected = "`args = \"message\"` is allowed only in a rule with `decision = \"allow\"`, without `exact`, whose \
                            `command` begins with \"git\", \"commit\"";
            return Err(section.error_at("args", expected));
        }
        Ok(Self {
            line: section.line(),
            decision,
            // Without `approve`, an ask rule requires approval of the command itself.
            approve: approve.unwrap_or_default(),
            reason: section.text("reason")?.map(|text| text.text).unwrap_or_default(),
            exact,
            // An exact rule names all words, so no table of harmless options is needed.
            any_args: args == Some(Args::Any) || exact,
            message,
            sandboxed,
            hosts,
            expires_at: section.timestamp("expires_at")?,
            matches: examples(section, "match")?,
            not_matches: examples(section, "not_match")?,
            elements: elements.into_iter().map(|words| words.into_iter().map(|word| word.text).collect()).collect(),
        })
    }

    /// Returns the names of the programs to which the rule applies.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().take(1).flatten().map(String::as_str)
    }

    /// Returns the number of words in the rule, including the program name.
    pub fn word_count(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether an allow rule matches a command. The program name must match as it is spelled, and the rule's
    /// words must directly follow it, except that harmless global options of git are skipped.
    pub fn matches_allow(&self, argv: &[Arg]) -> bool {
        let Some((program, rest)) = self.elements.split_first() else { return false };
        if self.message {
            return element_matches(program, &argv[0].text)
                && without_messages(argv)
                    .is_some_and(|words| words.len() < argv.len() && starts_with_elements(rest, &words[1..]));
        }
        if self.exact {
            // The shell would replace a glob with other words.
            return element_matches(program, &argv[0].text)
                && !argv.iter().any(|arg| arg.glob)
                && starts_with_elements(rest, &argv[1..]);
        }
        let skipped = if argv[0].text == "git" { harmless_globals(&argv[1..]) } else { 0 };
        let words = &argv[1 + skipped..];
        one_matches(program, &argv[0].text)
            && words.len() >= rest.len()
            && rest.iter().zip(words).all(|(element, arg)| one_matches(element, &arg.text))
    }

    /// Returns whether the rule may match a program spelled like this. A path is matched only by a rule with
    /// `sandboxed` that contains exactly this path.
    pub fn may_name(&self, program: &str) -> bool {
        !program.contains('/') || (self.sandboxed && self.programs().any(|name| name == program))
    }

    /// Returns whether an ask or deny rule matches a command. Options before and between the words are ignored unless
    /// the rule is exact.
    pub fn restricts(&self, argv: &[Arg]) -> bool {
        let Some((program, rest)) = self.elements.split_first() else { return false };
        if self.exact {
            return element_matches(program, base(&argv[0].text)) && starts_with_elements(rest, &argv[1..]);
        }
        one_matches(program, base(&argv[0].text)) && starts_with_elements_and_options(rest, &argv[1..])
    }
}

/// Additional arguments that an allow rule permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Args {
    /// Only options with which the program neither writes files nor runs code.
    Table,
    Any,
    /// Only a commit message.
    Message,
}

/// Reads the hosts that a command may connect to when it runs in a copy of the workspace.
fn hosts(section: &BundleTable<'_>, sandboxed: bool, elements: &[Vec<SpannedText>]) -> Result<Vec<SandboxAccess>, BundleError> {
    let Some(texts) = section.texts("hosts")? else { return Ok(Vec::new()) };
    if !sandboxed {
        return Err(section.error_at("hosts", "`hosts` is allowed only in a rule with `sandboxed = true`"));
    }
    for name in elements.iter().take(1).flatten() {
        let second = elements.get(1).and_then(|words| words.first()).map(|word| Arg::plain(&word.text));
        let argv: Vec<Arg> = std::iter::once(Arg::plain(&name.text)).chain(second).collect();
        if let Some(why) = never_reaches(&argv) {
            let message = format!("`{}` {why}, so no rule lets it reach hosts without a prompt", name.text);
            return Err(section.source.error(&name.span, message));
        }
    }
    let host =
        |text: SpannedText| parse_host(&text.text).map_err(|why| section.source.error(&text.span, format!("`hosts`: {why}")));
    texts.into_iter().map(host).collect()
}

/// Returns whether a program name, such as `./gradlew`, is a path below the current directory.
fn is_local(name: &str) -> bool {
    name.strip_prefix("./").is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
}

/// Returns whether the words are exactly the given elements, with no further words.
fn starts_with_elements(elements: &[Vec<String>], words: &[Arg]) -> bool {
    elements.len() == words.len() && elements.iter().zip(words).all(|(element, word)| element_matches(element, &word.text))
}

fn element_matches(element: &[String], text: &str) -> bool {
    element.iter().any(|alternative| alternative == text)
}

fn one_matches(element: &[String], text: &str) -> bool {
    element
        .iter()
        .any(|alternative| alternative == text || (alternative.contains(['*', '?']) && pattern::matches(alternative, text)))
}

/// Returns whether the words start with the elements, ignoring options and their values.
fn starts_with_elements_and_options(elements: &[Vec<String>], words: &[Arg]) -> bool {
    // Tracks all possible readings at once: the number of elements found, and whether the preceding word was an option.
    let mut ways = vec![(0, false)];
    for word in words {
        if ways.iter().any(|(found, _)| *found == elements.len()) {
            return true;
        }
        let option = word.text.starts_with(['-', '+']);
        let mut next = Vec::new();
        for (found, behind_option) in ways {
            if one_matches(&elements[found], &word.text) {
                next.push((found + 1, option));
            }
            if option {
                next.push((found, !word.text.contains('=')));
            } else if behind_option {
                next.push((found, false));
            }
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            return false;
        }
        ways = next;
    }
    ways.iter().any(|(found, _)| *found == elements.len())
}

impl ProgramPattern {
    pub fn list(section: &BundleTable<'_>, key: &str) -> Result<Option<Vec<Self>>, BundleError> {
        let one = |text: SpannedText| {
            let mut words = text.text.split_whitespace().map(str::to_owned);
            let Some(program) = words.next() else {
                return Err(section.source.error(&text.span, format!("`{key}` contains an empty name; expected a program")));
            };
            Ok(Self { program, words: words.collect(), line: section.source.line(&text.span), text: text.text.clone() })
        };
        section.texts(key)?.map(|texts| texts.into_iter().map(one).collect()).transpose()
    }

    /// Returns whether the entry can match any command of the program `name`.
    pub fn is_about(&self, name: &str) -> bool {
        base(&self.program) == name || pattern::matches(&self.program, name)
    }

    /// Returns whether the entry could match a command, even if only because a glob expands to its program name.
    pub fn could_match(&self, argv: &[Arg]) -> bool {
        self.hits(argv) || (expands_to(&argv[0], &self.program) && self.hits(&with_name(argv, &self.program)))
    }

    /// Returns whether the entry matches a command. The program may be in any directory, flags may be in any order, and
    /// all other words must be in the given order.
    pub fn hits(&self, argv: &[Arg]) -> bool {
        let name = base(&argv[0].text);
        if !(self.program == name || self.program == argv[0].text || pattern::matches(&self.program, name)) {
            return false;
        }
        let (flags, words): (Vec<&String>, Vec<&String>) = self.words.iter().partition(|word| word.starts_with('-'));
        let words: Vec<Vec<String>> = words.into_iter().map(|word| vec![word.clone()]).collect();
        flags.into_iter().all(|flag| has_flags(name, flag, &argv[1..])) && starts_with_elements_and_options(&words, &argv[1..])
    }
}

/// Minimum number of literal characters that a program name with a glob must contain.
const MIN_TELLING: usize = 2;

/// Returns whether a program name with a glob, such as `/usr/bin/s?do`, can expand to this program. Returns `false` for
/// a glob with too few literal characters.
fn expands_to(arg: &Arg, program: &str) -> bool {
    let name = base(&arg.text);
    arg.glob
        && name.bytes().filter(u8::is_ascii_alphanumeric).count() >= MIN_TELLING
        && pattern::matches(&pattern::replace_classes(name), program)
}

fn with_name(argv: &[Arg], name: &str) -> Vec<Arg> {
    std::iter::once(Arg::plain(name)).chain(argv[1..].iter().cloned()).collect()
}

/// Returns whether the arguments contain every flag in one word of an entry (`-rf`, `--force`), in any spelling.
fn has_flags(program: &str, wanted: &str, args: &[Arg]) -> bool {
    if let Some(long) = wanted.strip_prefix("--") {
        return has_long(long, args) || short_option(program, long).is_some_and(|letter| has_short(program, letter, args));
    }
    wanted[1..].chars().all(|letter| has_short(program, letter, args) || has_word(wanted, args))
}

fn has_short(program: &str, letter: char, args: &[Arg]) -> bool {
    let same = |other: char| other == letter || matches!((program, other, letter), ("rm" | "cp" | "ls", 'r' | 'R', 'r' | 'R'));
    let options = args.iter().take_while(|arg| arg.text != "--").map(|arg| arg.text.as_str());
    let short = options
        .clone()
        .any(|text| text.len() > 1 && text.starts_with('-') && !text.starts_with("--") && text[1..].chars().any(same));
    short || LONG_NAMES.iter().any(|(of, short, long)| (of.is_empty() || *of == program) && same(*short) && has_long(long, args))
}

fn has_word(wanted: &str, args: &[Arg]) -> bool {
    args.iter().take_while(|arg| arg.text != "--").any(|arg| arg.text == wanted)
}

/// Returns whether the arguments contain a long option, possibly abbreviated (`--recurs`).
fn has_long(long: &str, args: &[Arg]) -> bool {
    args.iter().take_while(|arg| arg.text != "--").any(|arg| {
        let name = arg.text.strip_prefix("--").map_or("", |text| text.split('=').next().unwrap_or(text));
        !name.is_empty() && (long.starts_with(name) || name == long)
    })
}

fn short_option(program: &str, long: &str) -> Option<char> {
    LONG_NAMES.iter().find(|(of, _, name)| (of.is_empty() || *of == program) && *name == long).map(|(_, short, _)| *short)
}

/// Short and long spellings of commonly blocked flags, by program. An empty program name stands for every program.
const LONG_NAMES: &[(&str, char, &str)] = &[
    ("", 'r', "recursive"),
    ("", 'R', "recursive"),
    ("", 'f', "force"),
    ("", 'i', "in-place"),
    ("", 'a', "all"),
    ("", 'v', "verbose"),
    ("", 'q', "quiet"),
    ("", 'y', "yes"),
    ("", 'n', "dry-run"),
    ("", 'd', "delete"),
    ("git", 'D', "delete"),
    ("", 'g', "global"),
    ("", 'p', "parents"),
    ("", 'x', "extract"),
    ("", 'c', "command"),
];
