//! The command line told to shells and to `man`, from its one definition.

use super::definition::Line;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;
use std::path::Path;

/// A script for the shell.
pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Line::command(), "aye", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The page of aye itself.
pub fn manual() -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Line::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Writes that page and those of all subcommands.
pub fn write_manual(directory: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Line::command(), directory)
}
