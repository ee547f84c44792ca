//! Shell completions and man pages.

use crate::support::Project;

#[test]
fn completion_scripts_for_every_shell_contain_the_subcommands() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = project.aye(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("exec") && script.contains("sessions"), "{shell}");
    }
    project.aye(&["completions", "tcsh"]).exits(2);
}

#[test]
fn the_manual_is_printed_or_written_as_one_file_per_page() {
    let project = Project::empty();
    let page = project.aye(&["man"]).exits(0).stdout;
    assert!(page.starts_with(".ie") && page.contains(".TH aye 1"), "{page}");
    let directory = project.directory("home");
    project.aye(&["man", "--dir", &directory.display().to_string()]).exits(0);
    assert!(directory.join("aye.1").is_file() && directory.join("aye-exec.1").is_file());
    let told = project.aye(&["man", "--dir", "/nowhere/at/all"]).exits(2).stderr;
    assert!(told.starts_with("error: cannot write the manual") && told.contains("\nhint: "), "{told}");
}

#[test]
fn the_manual_has_the_conventional_sections() {
    let project = Project::empty();
    let page = project.aye(&["man"]).exits(0).stdout;
    for section in ["GLOBAL OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"] {
        assert!(page.contains(&format!(".SH \"{section}\"")) || page.contains(&format!(".SH {section}\n")), "{section}: {page}");
    }
    for word in ["130", "AYE\\_CONFIG\\_DIR", "ANTHROPIC\\_API\\_KEY", "config.toml", "/etc/aye/policy.toml", "aye exec"] {
        assert!(page.contains(word) || page.contains(&word.replace('\\', "")), "{word}: {page}");
    }
    let directory = project.directory("home");
    project.aye(&["man", "--dir", &directory.display().to_string()]).exits(0);
    let page = std::fs::read_to_string(directory.join("aye-policy-explain.1")).unwrap();
    assert!(page.contains("aye policy explain") && page.contains("EXAMPLES") && page.contains("EXIT STATUS"), "{page}");
    assert!(
        !page.contains("max-budget-usd") && !page.contains("max\\-budget\\-usd"),
        "global options are in aye(1) only: {page}"
    );
}
