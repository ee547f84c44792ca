//! Tests the output of the policy commands, all policy templates, and that parser and schema agree.

mod explained;
mod linted;
mod schema;
mod show;
mod templates;

use crate::policy::{Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::Mode;
use std::path::{Path, PathBuf};

fn bundle(text: &str) -> crate::policy::Bundle {
    crate::policy::Bundle::parse(text, "policy.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn enforcer(text: &str, mode: Mode) -> Enforcer {
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/me"),
        mode,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    Enforcer::new(vec![Layer::from_file(Scope::File, bundle(text), Path::new("policy.toml"))], context)
}
