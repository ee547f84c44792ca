//! `aye man`: prints the manual page, or writes all pages to files.

use super::cli;
use super::exit::Exit;
use super::trouble::Trouble;
use std::path::Path;

pub fn run(directory: Option<&Path>) -> Result<Exit, Trouble> {
    let Some(directory) = directory else {
        let page = cli::manual().map_err(|error| Trouble::failed(format!("cannot generate the manual page: {error}")))?;
        super::say(&page);
        return Ok(Exit::Completed);
    };
    cli::write_manual(directory).map_err(|error| {
        Trouble::usage(format!(
            "cannot write the manual to `{}`: {error}\nhint: choose an existing directory",
            directory.display()
        ))
    })?;
    super::say(&format!("wrote the manual pages to {}\n", directory.display()));
    Ok(Exit::Completed)
}
