//! Fuzz target for path patterns: any pattern of a bundle can be evaluated for any path.

#![no_main]

use libfuzzer_sys::fuzz_target;
use aye::fuzzing::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use aye::fuzzing::protocol::{Action, Mode, Place, Target};
use std::path::PathBuf;

fuzz_target!(|texts: (&str, &str)| {
    let (pattern, path) = texts;
    let text = format!(
        "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${{workspace}}\"]\nblocked_paths = [{}]\n",
        toml::Value::from(pattern)
    );
    let Ok(bundle) = Bundle::parse(&text, "policy.toml") else { return };
    let context = Context {
        roots: vec![PathBuf::from("/home/user/project")],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    let real = PathBuf::from("/home/user/project").join(path);
    let target = Target { given: path.to_owned(), real, place: Place::File { bytes: 1 } };
    let enforcer = Enforcer::new(vec![Layer::new(Scope::User, bundle)], context);
    enforcer.explain(&[Action::Read { target }], jiff::Timestamp::UNIX_EPOCH);
});
