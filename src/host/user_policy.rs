//! The user's policy file as created by aye, which extends the built-in policy.

use crate::policy::Bundle;
use std::path::Path;

/// Returns the text of a new policy file that extends the built-in policy. The file begins with a comment that states
/// what created it.
pub(crate) fn new_file(creator: &str) -> String {
    format!(
        "# Created by {creator}. The built-in policy applies to every capability that this file does not name;\n\
         # `aye policy show` shows what is in effect.\n\
         schema_version = 1\n\
         extends = \"built-in\"\n"
    )
}

/// Returns the text of a new file for the rules of a single project. The file begins with a comment that states what
/// created it.
pub(crate) fn new_project_file(creator: &str, directory: &Path) -> String {
    format!("# Rules you saved with {creator} in {}.\nschema_version = 1\n", directory.to_string_lossy().escape_debug())
}

/// Copies the built-in entries for a capability into a file that extends the built-in policy but does not mention that
/// capability. Because a capability in the file replaces its built-in entries, adding a single rule would otherwise
/// remove all of them.
pub(crate) fn with_capability(text: &str, capability: &str) -> String {
    let is_inherited = Bundle::parse(text, "policy.toml")
        .is_ok_and(|bundle| bundle.extends && !bundle.capabilities.granted.iter().any(|granted| granted == capability));
    match Bundle::built_in_section(capability).filter(|_| is_inherited) {
        Some(section) => format!("{}\n\n{section}", text.trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_policy_file_is_valid_and_grants_the_same_as_the_built_in_policy() {
        let bundle = Bundle::parse(&new_file("a test"), "policy.toml").unwrap();
        assert!(bundle.extends && bundle.capabilities.granted.is_empty(), "{bundle:?}");
    }

    #[test]
    fn entries_are_copied_once_and_only_into_a_policy_that_extends_the_built_in_one() {
        let built_in = Bundle::built_in().unwrap();
        for capability in &built_in.capabilities.granted {
            let copied = with_capability(&new_file("a test"), capability);
            let bundle = Bundle::parse(&copied, "policy.toml").unwrap_or_else(|error| panic!("{error}\n{copied}"));
            assert_eq!(bundle.capabilities.granted, [capability.as_str()], "{copied}");
            assert_eq!(with_capability(&copied, capability), copied);
            let entries = |bundle: &Bundle| {
                let section = format!("capabilities.\"{capability}\"");
                let of_it = bundle.stated.iter().filter(|entry| entry.section == section);
                of_it.map(|entry| (entry.key.clone(), entry.value.clone())).collect::<Vec<_>>()
            };
            assert_eq!(entries(&bundle), entries(&built_in), "{capability}");
        }
        let complete = "schema_version = 1\n[capabilities.\"File.Read\"]\n";
        assert_eq!(with_capability(complete, "Shell.Exec"), complete);
        assert_eq!(with_capability("no policy", "Shell.Exec"), "no policy", "the error is reported by whoever reads the file");
    }
}
