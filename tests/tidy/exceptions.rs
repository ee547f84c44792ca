//! Exceptions to the rules in this folder, with a count per module. The counts may only decrease.

use std::collections::BTreeSet;

/// Modules that still break a rule.
pub struct Exception {
    /// Names of the modules. There are several if code moves from the first one to the others.
    pub modules: &'static [&'static str],
    /// Maximum number of violations in all of these modules.
    pub count: usize,
}

/// Fails for a violation without an exception, for an exceeded count, and for an unused exception.
#[track_caller]
pub fn check(rule: &str, exceptions: &[Exception], found: &[(String, String)]) {
    let faults = faults(exceptions, found);
    assert!(faults.is_empty(), "{rule}:\n{}\n", faults.join("\n"));
}

fn faults(exceptions: &[Exception], found: &[(String, String)]) -> Vec<String> {
    let listed: BTreeSet<_> = exceptions.iter().flat_map(|exception| exception.modules).copied().collect();
    let mut faults: Vec<String> =
        found.iter().filter(|(module, _)| !listed.contains(module.as_str())).map(|(_, text)| text.clone()).collect();
    for Exception { modules, count } in exceptions {
        let texts: Vec<_> =
            found.iter().filter(|(module, _)| modules.contains(&module.as_str())).map(|(_, text)| text.as_str()).collect();
        let name = modules.join(", ");
        if texts.is_empty() {
            faults.push(format!("{name}: the exception is no longer needed, remove it"));
        } else if texts.len() > *count {
            faults.push(format!("{name}: {} found, at most {count} may be:\n  {}", texts.len(), texts.join("\n  ")));
        }
    }
    faults
}

#[test]
fn exceptions_cover_their_modules_up_to_a_count_and_must_be_needed() {
    let found =
        |modules: &[&str]| -> Vec<_> { modules.iter().map(|module| ((*module).to_owned(), format!("in {module}"))).collect() };
    let exceptions = &[Exception { modules: &["a", "b"], count: 2 }];
    assert!(faults(exceptions, &found(&["a", "b"])).is_empty());
    assert!(faults(exceptions, &found(&["a"])).is_empty());
    assert_eq!(faults(exceptions, &found(&["a", "b", "c"])), ["in c"]);
    assert_eq!(faults(exceptions, &found(&["a", "b", "b"])), ["a, b: 3 found, at most 2 may be:\n  in a\n  in b\n  in b"]);
    assert_eq!(faults(exceptions, &[]), ["a, b: the exception is no longer needed, remove it"]);
}
