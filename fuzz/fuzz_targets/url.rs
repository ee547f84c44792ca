//! Fuzz target for URLs under any lists of hosts: parsing is stable, and a list of blocked hosts never loosens a
//! verdict.

#![no_main]

use aye::fuzzing::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope, url};
use aye::fuzzing::protocol::{Action, Mode, VerdictKind};
use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;
use std::path::PathBuf;

fn verdict(layers: Vec<Layer>, text: &str, method: &str) -> VerdictKind {
    let context = Context {
        roots: vec![PathBuf::from("/home/user/project")],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    let enforcer = Enforcer::new(layers, context);
    let address: IpAddr = [10, 0, 0, 1].into();
    assert!(enforcer.may_connect(text, address).is_err(), "a private address is never connected to unless it is named");
    let actions = [Action::Fetch { url: text.to_owned(), method: method.to_owned() }];
    enforcer.explain(&actions, jiff::Timestamp::UNIX_EPOCH).verdict
}

fuzz_target!(|texts: (&str, &str, &str, bool)| {
    let (text, allowed, blocked, reads) = texts;
    if let Ok(destination) = url::parse(text) {
        // The evaluated URL and the URL of the connection are the same.
        let again = url::parse(destination.as_str());
        assert!(again.is_ok_and(|again| again.as_str() == destination.as_str()), "{text:?} is read as {:?}", destination.as_str());
        let _ = destination.redirect_target(allowed);
    }
    let bundle = |key: &str, host: &str| {
        let host = toml::Value::from(host);
        let text = format!("schema_version = 1\n[capabilities.\"Http.Request\"]\nallowed_methods = [\"GET\", \"POST\"]\n{key} = [{host}]\n");
        Bundle::parse(&text, "policy.toml")
    };
    let method = if reads { "GET" } else { "POST" };
    let Ok(wide) = bundle("allowed_hosts", allowed) else { return };
    let alone = verdict(vec![Layer::new(Scope::User, wide.clone())], text, method);
    let Ok(narrow) = bundle("blocked_hosts", blocked) else { return };
    let both = verdict(vec![Layer::new(Scope::User, wide), Layer::new(Scope::Project, narrow)], text, method);
    assert!(alone != VerdictKind::Deny || both == VerdictKind::Deny);
    assert!(alone == VerdictKind::Allow || both != VerdictKind::Allow);
});
