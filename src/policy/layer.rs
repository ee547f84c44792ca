//! A bundle in its place among the others: what it is called, what it may do, and its patterns made ready.

use super::bundle::{Approve, Bundle, Decision, FileRule, Files, Rule, ToolRule};
use super::layer_verdict::counts;
use super::paths::{Context, Places};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Who wrote a bundle; from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Cannot be loosened by anything.
    Managed,
    User,
    /// `--policy FILE`, in place of the user's and of what they remembered.
    File,
    BuiltIn,
    /// What the person remembers for this project: its rules count as the user's own, all else in it can only tighten.
    Mine,
    /// What they remember until aye quits, in the same way.
    Session,
    /// Can only tighten.
    Project,
}

/// A bundle and who wrote it.
#[derive(Debug, Clone)]
pub struct Layer {
    pub scope: Scope,
    pub bundle: Bundle,
    /// Where it stands, so that people can be told; the built-in one stands nowhere.
    pub file: Option<PathBuf>,
}

impl Layer {
    pub fn new(scope: Scope, bundle: Bundle) -> Self {
        Self { scope, bundle, file: None }
    }

    pub fn from_file(scope: Scope, bundle: Bundle, file: &Path) -> Self {
        Self { scope, bundle, file: Some(file.to_owned()) }
    }

    /// The only session it holds for; a project cannot name one.
    pub fn session_id(&self) -> Option<&str> {
        self.bundle.session_id.as_deref().filter(|_| self.scope.grants())
    }
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::File => "policy",
            Self::Managed => "managed",
            Self::Mine => "mine-here",
            Self::Session => "session",
            Self::Project => "project",
        }
    }

    /// What a rule is called in a verdict: `user:31`.
    pub fn rule(self, line: usize) -> String {
        match self {
            Self::BuiltIn | Self::Session => self.as_str().to_owned(),
            Self::User | Self::File | Self::Managed | Self::Mine | Self::Project => format!("{}:{line}", self.as_str()),
        }
    }

    /// Whether a capability it does not list is thereby refused.
    pub fn grants(self) -> bool {
        match self {
            Self::BuiltIn | Self::User | Self::File | Self::Managed => true,
            Self::Mine | Self::Session | Self::Project => false,
        }
    }
}

/// A rule and whose it is: what a person remembers for a project stands among the rules of their own layer.
#[derive(Debug, Clone)]
pub struct Owned<R> {
    pub scope: Scope,
    pub rule: R,
}

/// A rule about paths, its patterns compiled.
#[derive(Debug, Clone)]
pub struct PathRule {
    pub rule: FileRule,
    pub places: Places,
}

impl PathRule {
    pub fn new(rule: FileRule, context: &Context) -> Self {
        let places = Places::new(&rule.paths, context, rule.decision != Decision::Allow);
        Self { rule, places }
    }
}

/// A file capability with its patterns compiled.
#[derive(Debug, Clone)]
pub struct FileRules {
    pub files: Files,
    pub allowed: Option<Places>,
    pub blocked: Places,
    pub unprotected: Places,
    pub rules: Vec<Owned<PathRule>>,
}

impl FileRules {
    pub fn new(files: Files, scope: Scope, context: &Context) -> Self {
        Self {
            allowed: files.allowed.as_ref().map(|patterns| Places::new(patterns, context, false)),
            blocked: Places::new(&files.blocked, context, true),
            unprotected: Places::new(&files.unprotected, context, false),
            rules: owned(scope, files.rules.iter().map(|rule| PathRule::new(rule.clone(), context))),
            files,
        }
    }

    /// The rule that shuts a path, whatever else is said of it.
    pub fn shut(&self, scope: Scope, path: &Path, now: Timestamp) -> Option<Shut<'_>> {
        let blocked = || self.blocked.reach(path).map(|line| Shut { rule: scope.rule(line), denied: None });
        let denies = |owned: &&Owned<PathRule>| {
            let rule = &owned.rule.rule;
            rule.decision == Decision::Deny && counts(rule.expires_at, now) && owned.rule.places.reach(path).is_some()
        };
        let denied = || {
            let owned = self.rules.iter().find(denies)?;
            Some(Shut { rule: owned.scope.rule(owned.rule.rule.line), denied: Some(&owned.rule.rule) })
        };
        blocked().or_else(denied)
    }
}

/// What shuts a path: an entry of `blocked_paths`, or a rule.
pub struct Shut<'a> {
    pub rule: String,
    pub denied: Option<&'a FileRule>,
}

fn owned<R>(scope: Scope, rules: impl IntoIterator<Item = R>) -> Vec<Owned<R>> {
    rules.into_iter().map(|rule| Owned { scope, rule }).collect()
}

/// A layer made ready for one context.
#[derive(Debug, Clone)]
pub struct Ready {
    pub scope: Scope,
    pub bundle: Bundle,
    pub file: Option<PathBuf>,
    pub read: Option<FileRules>,
    pub write: Option<FileRules>,
    pub delete: Option<FileRules>,
    pub commands: Vec<Owned<Rule>>,
    pub tools: Vec<Owned<ToolRule>>,
    /// The same for custom tools.
    pub custom: Vec<Owned<ToolRule>>,
}

impl Ready {
    fn new(layer: Layer, context: &Context) -> Self {
        let Layer { scope, mut bundle, file } = layer;
        if !scope.grants() {
            restrain(&mut bundle, scope);
        }
        let compiled = |files: &Option<Files>| files.clone().map(|files| FileRules::new(files, scope, context));
        Self {
            scope,
            file,
            read: compiled(&bundle.read),
            write: compiled(&bundle.write),
            delete: compiled(&bundle.delete),
            commands: owned(scope, bundle.shell.iter().flat_map(|shell| shell.rules.clone())),
            tools: owned(scope, bundle.mcp.iter().flat_map(|mcp| mcp.rules.clone())),
            custom: owned(scope, bundle.custom.clone()),
            bundle,
        }
    }

    /// All layers, the strongest first; what the person remembers for this project joins the rules of their own layer.
    pub fn all(layers: Vec<Layer>, context: &Context) -> Vec<Self> {
        let mut all: Vec<Self> = layers.into_iter().map(|layer| Self::new(layer, context)).collect();
        all.sort_by_key(|layer| layer.scope);
        let mut mine: Vec<Self> = all.extract_if(.., |layer| matches!(layer.scope, Scope::Mine | Scope::Session)).collect();
        let Some(own) = all.iter_mut().find(|layer| matches!(layer.scope, Scope::User | Scope::File | Scope::BuiltIn)) else {
            return all;
        };
        // A file given for this run stands in the place of what was remembered before it.
        mine.retain(|layer| own.scope != Scope::File || layer.scope == Scope::Session);
        for remembered in &mut mine {
            own.join(remembered);
        }
        let at = all.iter().position(|layer| layer.scope > Scope::Mine).unwrap_or(all.len());
        all.splice(at..at, mine);
        all
    }

    fn join(&mut self, mine: &mut Self) {
        self.commands.append(&mut mine.commands);
        self.tools.append(&mut mine.tools);
        self.custom.append(&mut mine.custom);
        // What one's own layer makes readable, and what it makes readable in this project.
        let added = mine.bundle.shell.as_mut().and_then(|shell| shell.terms.readable_paths.take());
        if let (Some(shell), Some(added)) = (&mut self.bundle.shell, added) {
            shell.terms.readable_paths.get_or_insert_default().extend(added);
        }
        for (files, added) in
            [(&mut self.read, &mut mine.read), (&mut self.write, &mut mine.write), (&mut self.delete, &mut mine.delete)]
        {
            if let (Some(files), Some(added)) = (files, added) {
                files.rules.append(&mut added.rules);
            }
        }
    }

    /// Whether it has a say about a capability that it does not list: then the answer is no.
    pub fn refuses_unlisted(&self) -> bool {
        self.scope.grants() && !(self.scope == Scope::Managed && self.bundle.granted.is_empty())
    }
}

/// Takes away what only a layer that grants may say.
fn restrain(bundle: &mut Bundle, scope: Scope) {
    bundle.session_id = None;
    // A question is headed by who may be believed.
    bundle.approval_rules.clear();
    for files in [&mut bundle.read, &mut bundle.write, &mut bundle.delete].into_iter().flatten() {
        files.unprotected.clear();
        files.approval_rule = None;
    }
    if let Some(mcp) = &mut bundle.mcp {
        mcp.approval_rule = None;
    }
    if let Some(http) = &mut bundle.http {
        http.approval_rule = None;
        http.private.clear();
    }
    if let Some(shell) = &mut bundle.shell {
        shell.approval_rule = None;
        shell.terms.writable_paths = None;
        // Whether anything runs before an approval is for the user's own layer to say.
        shell.terms.approve = shell.terms.approve.filter(|approve| *approve == Approve::Command);
        if scope != Scope::Mine {
            shell.terms.readable_paths = None;
        }
        for rule in &mut shell.rules {
            rule.any_args = rule.exact;
        }
    }
}
