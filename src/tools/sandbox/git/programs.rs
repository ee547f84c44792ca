//! Git configuration variables that name programs, and their harmless replacements.

use super::config_format::Variable;

/// Purpose of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Read-only: a file without its filter is shown unfiltered.
    Reading,
    /// May write: a file that needs its filter is an error, so that it is not stored unfiltered.
    Writing,
}

/// A variable that names a program.
struct Program {
    section: &'static str,
    /// Whether there is a name between section and variable.
    named: bool,
    /// `*` for every variable of the section.
    variable: &'static str,
    /// The replacement value.
    value: &'static str,
}

/// Compares two files like `git diff`, but without its headers, because a driver cannot be unset.
const COMPARE: &str = r#"sh -c 'diff -u --label "a/$0" --label "b/$0" -- "$1" "$4"; :'"#;
/// Git's default merge program.
const MERGE: &str = "git merge-file %A %O %B";

const fn named(section: &'static str, variable: &'static str, value: &'static str) -> Program {
    Program { section, named: true, variable, value }
}

const fn plain(section: &'static str, variable: &'static str, value: &'static str) -> Program {
    Program { section, named: false, variable, value }
}

const PROGRAMS: &[Program] = &[
    named("filter", "clean", ""),
    named("filter", "smudge", ""),
    named("filter", "process", ""),
    named("diff", "textconv", "cat"),
    named("diff", "command", COMPARE),
    plain("diff", "external", COMPARE),
    named("merge", "driver", MERGE),
    named("credential", "helper", ""),
    named("remote", "uploadpack", "git-upload-pack"),
    named("remote", "receivepack", "git-receive-pack"),
    named("submodule", "update", "checkout"),
    named("hook", "command", "true"),
    named("hook", "enabled", "false"),
    named("difftool", "cmd", "false"),
    named("difftool", "path", "false"),
    named("mergetool", "cmd", "false"),
    named("mergetool", "path", "false"),
    named("browser", "cmd", "false"),
    named("browser", "path", "false"),
    named("man", "cmd", "false"),
    named("man", "path", "false"),
    named("guitool", "cmd", "false"),
    named("trailer", "command", "true"),
    named("trailer", "cmd", "true"),
    named("tar", "command", "false"),
    named("sendemail", "sendmailcmd", "false"),
    named("sendemail", "tocmd", "true"),
    named("sendemail", "cccmd", "true"),
    named("sendemail", "headercmd", "true"),
    plain("sendemail", "sendmailcmd", "false"),
    plain("sendemail", "tocmd", "true"),
    plain("sendemail", "cccmd", "true"),
    plain("sendemail", "headercmd", "true"),
    plain("interactive", "difffilter", "cat"),
    plain("gc", "recentobjectshook", "true"),
    plain("imap", "tunnel", "false"),
    plain("instaweb", "httpd", "false"),
    plain("instaweb", "browser", "false"),
    plain("alias", "*", ""),
    named("alias", "*", ""),
    plain("pager", "*", "false"),
];

/// Replacements that apply whether or not the program is configured.
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

/// A variable and its replacement, as on a command line.
pub(super) type Override = (Vec<u8>, &'static str);

/// Returns the replacements that always apply.
pub(super) fn always() -> impl Iterator<Item = Override> {
    ALWAYS.iter().map(|(name, value)| (name.as_bytes().to_vec(), *value))
}

/// Returns the replacement of this variable; `None` if it does not name a program.
pub(super) fn instead(variable: &Variable, of: Use) -> Option<Override> {
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
        return (of == Use::Reading && variable.subsection.is_some()).then(|| (key(), "false"));
    }
    let fits = |program: &&Program| {
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
        let of = |of: Use| {
            let found = parse(text.as_bytes()).variables.into_iter().filter_map(|variable| instead(&variable, of));
            found.map(|(name, value)| format!("{}={value}", String::from_utf8(name).unwrap())).collect::<Vec<_>>()
        };
        let compare = format!("diff.external={COMPARE}");
        let merge = format!("merge.z.driver={MERGE}");
        let writing = ["filter.A b.clean=", compare.as_str(), "diff.y.textconv=cat", "alias.st=", merge.as_str()];
        assert_eq!(of(Use::Writing), writing);
        assert_eq!(of(Use::Reading)[1], "filter.A b.required=false");
    }
}
