//! The capability tables of a bundle: what each may say.

use super::reader::{BundleError, Section, Text};
use super::rule::{Blocked, Rule};

/// A path pattern as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub line: usize,
}

/// `File.Read`, `File.Write`, `File.Delete`.
#[derive(Debug, Clone, Default)]
pub struct Files {
    pub line: usize,
    pub allowed: Option<Vec<Pattern>>,
    pub blocked: Vec<Pattern>,
    /// Protected places this bundle opens, at high risk.
    pub unprotected: Vec<Pattern>,
    pub max_file_size_bytes: Option<u64>,
    pub requires_approval: bool,
    pub approval_rule: Option<String>,
}

/// From the strictest to the laxest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SandboxSetting {
    ReadOnly,
    #[default]
    WorkspaceWrite,
    Off,
}

/// Which variables a command is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Environment {
    Inherit,
    #[default]
    Core,
    Only(Vec<String>),
}

/// `Shell.Exec`.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    pub line: usize,
    pub requires_approval: bool,
    pub approval_rule: Option<String>,
    pub blocked: Vec<Blocked>,
    pub allowed: Option<Vec<Blocked>>,
    pub allowed_line: usize,
    pub rules: Vec<Rule>,
    pub sandbox: Option<SandboxSetting>,
    pub environment: Option<Environment>,
    pub max_output_bytes: Option<u64>,
}

impl Files {
    pub fn read(section: &Section<'_>, writes: bool) -> Result<Self, BundleError> {
        let mut known = vec!["allowed_paths", "blocked_paths", "max_file_size_bytes", "requires_approval", "approval_rule"];
        if writes {
            known.push("unprotected_paths");
        }
        section.only(&known)?;
        Ok(Self {
            line: section.line(),
            allowed: patterns(section, "allowed_paths")?,
            blocked: patterns(section, "blocked_paths")?.unwrap_or_default(),
            unprotected: if writes { patterns(section, "unprotected_paths")?.unwrap_or_default() } else { Vec::new() },
            max_file_size_bytes: section.number("max_file_size_bytes")?,
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
        })
    }
}

fn patterns(section: &Section<'_>, key: &str) -> Result<Option<Vec<Pattern>>, BundleError> {
    let one = |text: Text| {
        if text.text.is_empty() || text.text.contains('\0') {
            return Err(section.source.error(&text.span, format!("`{key}` holds an empty path, expected a prefix or a glob")));
        }
        let open = text.text.replace("${workspace}", "");
        if open.contains("${") {
            let message = format!("unknown variable in `{}`, expected `${{workspace}}` or `~`", text.text);
            return Err(section.source.error(&text.span, message));
        }
        globset::Glob::new(&text.text.replace("${workspace}", "/w"))
            .map_err(|error| section.source.error(&text.span, format!("`{}` is no glob: {}", text.text, error.kind())))?;
        Ok(Pattern { line: section.source.line(&text.span), text: text.text })
    };
    section.texts(key)?.map(|texts| texts.into_iter().map(one).collect()).transpose()
}

impl Shell {
    pub fn read(section: &Section<'_>) -> Result<Self, BundleError> {
        section.only(&[
            "requires_approval",
            "approval_rule",
            "blocked_commands",
            "allowed_commands",
            "sandbox",
            "network",
            "preview",
            "writable_paths",
            "cache",
            "limits",
            "max_output_bytes",
            "environment",
            "rules",
        ])?;
        Self::check_sandbox(section)?;
        let sandbox = section.choice(
            "sandbox",
            &[
                ("read-only", SandboxSetting::ReadOnly),
                ("workspace-write", SandboxSetting::WorkspaceWrite),
                ("off", SandboxSetting::Off),
            ],
        )?;
        Ok(Self {
            line: section.line(),
            requires_approval: section.switch("requires_approval")?.unwrap_or(false),
            approval_rule: section.text("approval_rule")?.map(|text| text.text),
            blocked: Blocked::list(section, "blocked_commands")?.unwrap_or_default(),
            allowed: Blocked::list(section, "allowed_commands")?,
            allowed_line: section.line_of("allowed_commands").unwrap_or_default(),
            rules: section.sections("rules")?.iter().map(Rule::read).collect::<Result<_, _>>()?,
            sandbox,
            environment: environment(section)?,
            max_output_bytes: section.number("max_output_bytes")?,
        })
    }

    fn check_sandbox(section: &Section<'_>) -> Result<(), BundleError> {
        section.choice("network", &[("deny", ()), ("allow", ())])?;
        section.choice("preview", &[("offer", ()), ("always", ()), ("never", ())])?;
        section.choice("cache", &[("private", ()), ("inherit", ())])?;
        patterns(section, "writable_paths")?;
        let Some(limits) = section.section("limits")? else { return Ok(()) };
        let known = ["processes", "memory_mb", "file_mb", "cpu_seconds"];
        limits.only(&known)?;
        known.iter().try_for_each(|key| limits.number(key).map(|_| ()))
    }
}

fn environment(section: &Section<'_>) -> Result<Option<Environment>, BundleError> {
    if section.is_text("environment") {
        let choices = [("inherit", Environment::Inherit), ("core", Environment::Core)];
        let named: Vec<(&str, &Environment)> = choices.iter().map(|(name, value)| (*name, value)).collect();
        return Ok(section.choice("environment", &named)?.cloned());
    }
    let names = section.texts("environment")?;
    Ok(names.map(|names| Environment::Only(names.into_iter().map(|name| name.text).collect())))
}

/// Capabilities that list tools by name.
pub fn check_tools(section: &Section<'_>, key: &str) -> Result<(), BundleError> {
    section.only(&[key, "requires_approval", "approval_rule"])?;
    section.texts(key)?;
    section.switch("requires_approval")?;
    section.text("approval_rule").map(|_| ())
}
