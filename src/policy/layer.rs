//! A bundle in its place among the others: what it is called, what it may do, and its patterns made ready.

use super::bundle::{Bundle, Files};
use super::paths::{Context, Places};
use std::path::{Path, PathBuf};

/// Who wrote a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    BuiltIn,
    User,
    /// `--policy FILE`, in place of the user's.
    File,
    /// Cannot be loosened by anything.
    Managed,
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
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::File => "policy",
            Self::Managed => "managed",
            Self::Project => "project",
        }
    }

    /// What a rule is called in a verdict: `user:31`.
    pub fn rule(self, line: usize) -> String {
        match self {
            Self::BuiltIn => "built-in".to_owned(),
            Self::User | Self::File | Self::Managed | Self::Project => format!("{}:{line}", self.as_str()),
        }
    }

    /// Whether a capability it does not list is thereby refused.
    pub fn grants(self) -> bool {
        match self {
            Self::BuiltIn | Self::User | Self::File | Self::Managed => true,
            Self::Project => false,
        }
    }
}

/// A file capability with its patterns compiled.
#[derive(Debug, Clone)]
pub struct FileRules {
    pub files: Files,
    pub allowed: Option<Places>,
    pub blocked: Places,
    pub unprotected: Places,
}

impl FileRules {
    fn new(files: &Files, context: &Context) -> Self {
        Self {
            allowed: files.allowed.as_ref().map(|patterns| Places::new(patterns, context, false)),
            blocked: Places::new(&files.blocked, context, true),
            unprotected: Places::new(&files.unprotected, context, false),
            files: files.clone(),
        }
    }
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
}

impl Ready {
    pub fn new(layer: Layer, context: &Context) -> Self {
        let compiled = |files: &Option<Files>| files.as_ref().map(|files| FileRules::new(files, context));
        Self {
            scope: layer.scope,
            read: compiled(&layer.bundle.read),
            write: compiled(&layer.bundle.write),
            delete: compiled(&layer.bundle.delete),
            bundle: layer.bundle,
            file: layer.file,
        }
    }

    /// Whether it has a say about a capability that it does not list: then the answer is no.
    pub fn refuses_unlisted(&self) -> bool {
        self.scope.grants() && !(self.scope == Scope::Managed && self.bundle.granted.is_empty())
    }
}
