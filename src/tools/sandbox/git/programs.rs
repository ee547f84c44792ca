//! Git configuration variables that specify programs, and harmless replacements for their values.

use super::config_format::Variable;

/// Effects of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePurpose {
    /// Only reads. A file for which a filter is configured is shown unfiltered.
    Reading,
    /// May write. If a file needs its filter, git fails, so the file is not stored unfiltered.
    Writing,
}

/// A variable that specifies a program.
struct ProgramVariable {
    section: &'static str,
    /// Whether the section has a subsection.
    named: bool,
    /// Name of the variable, or `*` for every variable in the section.
    variable: &'static str,
    /// Value that replaces the configured one.
    value: &'static str,
}

/// Command that compares two files as `git diff` does, but without its headers. Needed because a driver cannot be
/// unset.
const COMPARE: &str = r#"sh -c 'diff -u --label "a/$0" --label "b/$0" -- "$1" "$4"; :'"#;
/// Git's default merge program.
const MERGE: &str = "git merge-file %A %O %B";

const fn named_driver(section: &'static str, variable: &'static str, value: &'static str) -> ProgramVariable {
    ProgramVariable { section, named: true, variable, value }
}

const fn plain_variable(section: &'static str, variable: &'static str, value: &'static str) -> ProgramVariable {
    ProgramVariable { section, named: false, variable, value }
}

const PROGRAMS: &[ProgramVariable] = &[
    named_driver("filter", "clean", ""),
    named_driver("filter", "smudge", ""),
    named_driver("filter", "process", ""),
    named_driver("diff", "textconv", "cat"),
    named_driver("diff", "command", COMPARE),
    plain_variable("diff", "external", COMPARE),
    named_driver("merge", "driver", MERGE),
    named_driver("credential", "helper", ""),
    named_driver("remote", "uploadpack", "git-upload-pack"),
    named_driver("remote", "receivepack", "git-receive-pack"),
    named_driver("submodule", "update", "checkout"),
    named_driver("hook", "command", "true"),
    named_driver("hook", "enabled", "false"),
    named_driver("difftool", "cmd", "false"),
    named_driver("difftool", "path", "false"),
    named_driver("mergetool", "cmd", "false"),
    named_driver("mergetool", "path", "false"),
    named_driver("browser", "cmd", "false"),
    named_driver("browser", "path", "false"),
    named_driver("man", "cmd", "false"),
    named_driver("man", "path", "false"),
    named_driver("guitool", "cmd", "false"),
    named_driver("trailer", "command", "true"),
    named_driver("trailer", "cmd", "true"),
    named_driver("tar", "command", "false"),
    named_driver("sendemail", "sendmailcmd", "false"),
    named_driver("sendemail", "tocmd", "true"),
    named_driver("sendemail", "cccmd", "true"),
    named_driver("sendemail", "headercmd", "true"),
    plain_variable("sendemail", "sendmailcmd", "false"),
    plain_variable("sendemail", "tocmd", "true"),
    plain_variable("sendemail", "cccmd", "true"),
    plain_variable("sendemail", "headercmd", "true"),
    plain_variable("interactive", "difffilter", "cat"),
    plain_variable("gc", "recentobjectshook", "true"),
    plain_variable("imap", "tunnel", "false"),
    plain_variable("instaweb", "httpd", "false"),
    plain_variable("instaweb", "browser", "false"),
    plain_variable("alias", "*", ""),
    named_driver("alias", "*", ""),
    plain_variable("pager", "*", "false"),
];

/// Replacements that apply whether or not a program is configured.
const ALWAYS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.alternateRefsCommand", "true"),
    ("sequence.editor", "false"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("log.showSignature", "false"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("init.templateDir", ""),
    ("protocol.ext.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// A variable and its replacement value, as given on a command line.
pub(super) type Override = (Vec<u8>, &'static str);

/// Returns the replacements that apply to every line.
pub(super) fn always() -> impl Iterator<Item = Override> {
    ALWAYS.iter().map(|(name, value)| (name.as_bytes().to_vec(), *value))
}

/// Returns the replacement for this variable, or `None` if the variable does not specify a program.
pub(super) fn replacement(variable: &Variable, of: LinePurpose) -> Option<Override> {
    let key = || {
        let mut key = variable.section.clone().into_bytes();
        if let Some(subsection) = &variable.subsection {
            key.push(b'.');
            key.extend_from_slice(subsection);
        }
        key.push(b'.');
        key.extend_from_slice(variable.name.as_bytes());
        key
    };
    if (variable.section.as_str(), variable.name.as_str()) == ("filter", "required") {
        return (of == LinePurpose::Reading && variable.subsection.is_some()).then(|| (key(), "false"));
    }
    let fits = |program: &&ProgramVariable| {
        program.section == variable.section
            && program.named == variable.subsection.is_some()
            && (program.variable == "*" || program.variable == variable.name)
    };
    PROGRAMS.iter().find(fits).map(|program| (key(), program.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::sandbox::git::config_format::parse;

    #[test]
    fn every_configured_program_is_overridden_under_its_own_key() {
        let text = "[filter \"A b\"]\nclean = x\nrequired\n[diff]\nexternal = x\n[diff \"y\"]\ntextconv = x\nbinary = true\n\
                    [core]\nbare = false\n[alias]\nst = !x\n[merge.Z]\ndriver = x\n";
        let of = |of: LinePurpose| {
            let found = parse(text.as_bytes()).variables.into_iter().filter_map(|variable| replacement(&variable, of));
            found.map(|(name, value)| format!("{}={value}", String::from_utf8(name).unwrap())).collect::<Vec<_>>()
        };
        let compare = format!("diff.external={COMPARE}");
        let merge = format!("merge.z.driver={MERGE}");
        let writing = ["filter.A b.clean=", compare.as_str(), "diff.y.textconv=cat", "alias.st=", merge.as_str()];
        assert_eq!(of(LinePurpose::Writing), writing);
        assert_eq!(of(LinePurpose::Reading)[1], "filter.A b.required=false");
    }
}
