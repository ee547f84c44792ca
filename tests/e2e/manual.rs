//! What shells and `man` are told.

use crate::support::Project;

#[test]
fn every_shell_gets_a_script_that_knows_the_subcommands() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = project.aye(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("exec") && script.contains("sessions"), "{shell}");
    }
    project.aye(&["completions", "tcsh"]).exits(2);
}

#[test]
fn the_manual_is_printed_or_written_page_by_page() {
    let project = Project::empty();
    let page = project.aye(&["man"]).exits(0).stdout;
    assert!(page.starts_with(".ie") && page.contains(".TH aye 1"), "{page}");
    let directory = project.beside("home");
    project.aye(&["man", "--dir", &directory.display().to_string()]).exits(0);
    assert!(directory.join("aye.1").is_file() && directory.join("aye-exec.1").is_file());
    let told = project.aye(&["man", "--dir", "/nowhere/at/all"]).exits(2).stderr;
    assert!(told.contains("cannot write the manual"), "{told}");
}
