//! Warnings about bundles that are valid but probably not what the author intended.

use super::Bundle;
use super::capability::{FileCapability, ShellCapability};
use super::rule::{ProgramPattern, Rule, RuleDecision};
use crate::policy::paths::Pattern;
use crate::policy::shell::option_verdict::OptionVerdict;
use crate::policy::shell::options::check_options;
use crate::policy::shell::{Arg, pattern};
use jiff::Timestamp;

/// A warning about one line of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub line: usize,
    pub message: String,
}

const EXPIRED: &str = "the rule has expired and has no effect; remove it or renew it";
/// Names of the approval rules for which every version of aye has a title.
const HEADINGS: [&str; 4] = ["edit", "delete", "command", "network"];

/// Returns the warnings for a bundle. If `of_project` is set, the bundle belongs to a project and can only tighten the
/// policy, so entries that would loosen the policy are reported, whereas missing keys are not.
pub fn warnings(bundle: &Bundle, of_project: bool, now: Timestamp) -> Vec<Warning> {
    let mut found = Vec::new();
    if bundle.expires_at.is_some_and(|end| end <= now) {
        let line = find_line(bundle, "", "expires_at").unwrap_or(1);
        let message = "the policy has expired, so nothing is allowed; renew it or remove `expires_at`";
        found.push(Warning { line, message: message.to_owned() });
    }
    let files = [
        ("File.Read", &bundle.capabilities.read),
        ("File.Write", &bundle.capabilities.write),
        ("File.Delete", &bundle.capabilities.delete),
    ];
    for (name, files) in files.into_iter().filter_map(|(name, files)| Some((name, files.as_ref()?))) {
        found.extend(lint_files(name, files, now));
    }
    if let Some(shell) = &bundle.capabilities.shell {
        found.extend(shell.blocked.iter().filter_map(lint_blocked));
        found.extend(lint_rules(shell, now));
    }
    if of_project {
        let warning = |(line, what): &(usize, String)| Warning {
            line: *line,
            message: format!("{what} has no effect, because a project can only tighten the policy"),
        };
        found.extend(bundle.widens().iter().map(warning));
    } else {
        found.extend(lint_unasked(bundle));
        found.extend(lint_narrow_grants(bundle).map(|message| Warning { line: 1, message }));
    }
    found.extend(headings(bundle));
    found.sort_by_key(|warning| warning.line);
    found
}

/// Warns about a policy that grants access to neither files nor commands, which is rarely intended.
pub fn lint_narrow_grants(bundle: &Bundle) -> Option<String> {
    let grants = |names: &[&str]| names.iter().any(|name| bundle.capabilities.granted.iter().any(|granted| granted == name));
    let is_little = !bundle.extends && !grants(&["File.Read", "File.Write", "File.Delete", "Shell.Exec"]);
    let hint = "to add it to the built-in policy, add the line `extends = \"built-in\"` below `schema_version`";
    is_little.then(|| format!("the policy grants neither files nor commands, so the model can do almost nothing; {hint}"))
}

fn lint_files(name: &str, files: &FileCapability, now: Timestamp) -> Vec<Warning> {
    let mut found = Vec::new();
    let ended = files.rules.iter().filter(|rule| rule.expires_at.is_some_and(|end| end <= now));
    found.extend(ended.map(|rule| Warning { line: rule.line, message: EXPIRED.to_owned() }));
    if files.allowed.as_ref().is_some_and(Vec::is_empty) {
        let message =
            format!("`allowed_paths` of {name} is empty, so every path is denied; without this key, all paths are allowed");
        found.push(Warning { line: files.line, message });
    }
    let all = files.allowed.iter().flatten().chain(&files.blocked).chain(&files.unprotected);
    let all = all.chain(files.rules.iter().flat_map(|rule| &rule.paths));
    found.extend(all.filter_map(lint_trailing));
    let never = |pattern: &&Pattern| pattern.text.split('/').any(|part| matches!(part, ".git" | ".aye"));
    found.extend(files.unprotected.iter().filter(never).map(|pattern| Warning {
        line: pattern.line,
        message: format!("`{}` stays protected: `.git` and `.aye` cannot be unprotected", pattern.text),
    }));
    found
}

/// Warns about a glob that ends with a slash. Such a glob never matches, because no path ends with a slash.
fn lint_trailing(pattern: &Pattern) -> Option<Warning> {
    let glob = pattern.text.replace("${workspace}", "").contains(['*', '?', '[', '{']);
    let open = pattern.text.trim_end_matches('/');
    (glob && open.len() < pattern.text.len() && !open.is_empty()).then(|| Warning {
        line: pattern.line,
        message: format!("`{}` matches nothing, because no path ends with `/`; write `{open}`", pattern.text),
    })
}

fn lint_blocked(entry: &ProgramPattern) -> Option<Warning> {
    let warning = |message| Some(Warning { line: entry.line, message });
    if let Some(operator) =
        entry.words.iter().find(|word| matches!(word.as_str(), "|" | "||" | "&&" | "&" | ";" | ">" | ">>" | "<"))
    {
        return warning(format!(
            "`{}` blocks nothing, because `{operator}` is not part of a command; each command in a line is checked separately",
            entry.text
        ));
    }
    let (directory, name) = entry.program.rsplit_once('/')?;
    if name.is_empty() {
        return warning(format!("`{}` blocks nothing, because the entry names a directory", entry.text));
    }
    warning(format!("`{}` blocks only calls as `{directory}/{name}`; `{name}` blocks the program in every directory", entry.text))
}

fn lint_rules(shell: &ShellCapability, now: Timestamp) -> Vec<Warning> {
    let mut found = Vec::new();
    for (at, rule) in shell.rules.iter().enumerate() {
        let mut warn = |message: String| found.push(Warning { line: rule.line, message });
        if rule.expires_at.is_some_and(|end| end <= now) {
            warn(EXPIRED.to_owned());
            continue;
        }
        if let Some(program) = rule.elements.iter().take(1).flatten().find(|program| program.contains(char::is_whitespace)) {
            let words: Vec<String> = program.split_whitespace().map(|word| format!("\"{word}\"")).collect();
            warn(format!("`{program}` is not a program name; use an array of words: [{}]", words.join(", ")));
            continue;
        }
        if let Some(earlier) = shell.rules[..at].iter().find(|earlier| is_equivalent(earlier, rule)) {
            warn(format!("the rule duplicates the rule on line {}", earlier.line));
        } else if let Some(stricter) = stricter(shell, rule) {
            warn(format!("the rule never applies: {stricter}"));
        } else if rule.decision == RuleDecision::Allow && !rule.any_args && !rule.message && !rule.sandboxed {
            found.extend(lint_options(rule));
        }
    }
    found
}

/// Returns whether two rules match the same commands and have the same effect.
fn is_equivalent(one: &Rule, other: &Rule) -> bool {
    one.decision == other.decision
        && one.elements == other.elements
        && (one.any_args, one.exact, one.message, one.sandboxed) == (other.any_args, other.exact, other.message, other.sandboxed)
        && one.hosts == other.hosts
        && one.expires_at.is_none()
}

/// Describes the entry that always takes precedence over the rule; `None` if no entry does. Blocked commands and deny
/// rules take precedence over ask rules, and ask rules over allow rules.
fn stricter(shell: &ShellCapability, rule: &Rule) -> Option<String> {
    if let Some(entry) = shell.blocked.iter().find(|entry| blocks(entry, rule)) {
        return Some(format!("`blocked_commands` contains `{}` on line {}", entry.text, entry.line));
    }
    let before = |other: &&Rule| match (other.decision, rule.decision) {
        (RuleDecision::Deny, RuleDecision::Allow | RuleDecision::Ask) | (RuleDecision::Ask, RuleDecision::Allow) => true,
        (RuleDecision::Deny | RuleDecision::Ask | RuleDecision::Allow, _) => false,
    };
    let covering = shell
        .rules
        .iter()
        .filter(before)
        .find(|other| other.expires_at.is_none() && !other.exact && covers(&other.elements, &rule.elements));
    covering.map(|other| {
        let verb = if other.decision == RuleDecision::Deny { "denies" } else { "asks about" };
        format!("the rule on line {} {verb} everything it matches", other.line)
    })
}

fn blocks(entry: &ProgramPattern, rule: &Rule) -> bool {
    let flags = entry.words.iter().any(|word| word.starts_with('-'));
    let elements: Vec<Vec<String>> = std::iter::once(&entry.program).chain(&entry.words).map(|word| vec![word.clone()]).collect();
    !flags && covers(&elements, &rule.elements)
}

/// Returns whether every command that starts with `narrow` also starts with `wide`.
fn covers(wide: &[Vec<String>], narrow: &[Vec<String>]) -> bool {
    let one = |wide: &Vec<String>, narrow: &Vec<String>| {
        narrow.iter().all(|word| {
            wide.iter().any(|pattern| pattern == word || (!is_glob(word) && is_glob(pattern) && pattern::matches(pattern, word)))
        })
    };
    wide.len() <= narrow.len() && wide.iter().zip(narrow).all(|(wide, narrow)| one(wide, narrow))
}

fn is_glob(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Warns about two kinds of allow rule: one that allows every option because aye does not know the program's options,
/// and one whose program can write although the option table permits only reading.
fn lint_options(rule: &Rule) -> Option<Warning> {
    let programs = rule.elements.first()?;
    let plain = |name: &&String| !is_glob(name);
    let arg = |text: &String| Arg::plain(text.clone());
    // Some tables require a subcommand after the program name.
    let unknown = |name: &&String| {
        [vec![arg(name)], vec![arg(name), Arg::plain("x")]]
            .iter()
            .all(|words| matches!(check_options(words), OptionVerdict::NoTable))
    };
    if let Some(name) = programs.iter().filter(plain).find(unknown) {
        let message = format!(
            "aye does not know the options of `{name}`, so the rule allows all of them; set `args = \"any\"` if that is intended"
        );
        return Some(Warning { line: rule.line, message });
    }
    let words: Option<Vec<Arg>> =
        rule.elements.iter().map(|words| words.first().filter(|word| words.len() == 1 && !is_glob(word)).map(arg)).collect();
    let mut words = words.filter(|_| rule.matches.is_empty())?;
    let OptionVerdict::MayDoMore { word } = check_options(&words) else { return None };
    let word = word.to_owned();
    // Some commands are read-only only with a word such as `list`.
    for more in ["list", "show", "get", "status", "--list", "-l", "--get"] {
        words.push(Arg::plain(more));
        if !matches!(check_options(&words), OptionVerdict::MayDoMore { .. }) {
            return None;
        }
        words.pop();
    }
    let message = format!(
        "the rule allows only reading, but `{word}` can write or run something; set `args = \"any\"`, or add `match` examples"
    );
    Some(Warning { line: rule.line, message })
}

/// Returns the line number of a key, or `None` if the bundle does not contain the key.
fn find_line(bundle: &Bundle, section: &str, key: &str) -> Option<usize> {
    bundle.stated.iter().find(|stated| stated.section == section && stated.key == key).map(|stated| stated.line)
}

/// Warns about capabilities that need no approval merely because `requires_approval` is not set.
fn lint_unasked(bundle: &Bundle) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |line: usize, name: &str, what: &str| {
        if find_line(bundle, &format!("capabilities.\"{name}\""), "requires_approval").is_none() {
            let message = format!(
                "{name} does not set `requires_approval`, so {what} without approval; set it to false if that is intended"
            );
            found.push(Warning { line, message });
        }
    };
    if let Some(write) = bundle.capabilities.write.as_ref().filter(|files| !refuses_all(files)) {
        warn(write.line, "File.Write", "files are written");
    }
    if let Some(delete) = bundle.capabilities.delete.as_ref().filter(|files| !refuses_all(files)) {
        warn(delete.line, "File.Delete", "files are deleted");
    }
    if let Some(shell) = bundle.capabilities.shell.as_ref().filter(|shell| shell.allowed.is_none()) {
        warn(shell.approval_line, "Shell.Exec", "every command that no rule denies runs");
    }
    found
}

fn refuses_all(files: &FileCapability) -> bool {
    files.allowed.as_ref().is_some_and(Vec::is_empty)
}

fn headings(bundle: &Bundle) -> Vec<Warning> {
    let named = bundle.stated.iter().filter(|stated| stated.key == "approval_rule");
    let missing = named.filter_map(|stated| {
        let rule = stated.value.trim_matches('"');
        let known = bundle.approval_rules.contains_key(rule) || HEADINGS.contains(&rule);
        let message = format!("[approval_rules.{rule}] is not defined, so the approval has the default title");
        (!known).then_some(Warning { line: stated.line, message })
    });
    missing.collect()
}
