//! `aye man`: the manual, printed or written to files.

use super::cli;
use super::exit::Exit;
use super::trouble::Trouble;
use std::path::Path;

pub fn run(directory: Option<&Path>) -> Result<Exit, Trouble> {
    let Some(directory) = directory else {
        let page = cli::manual().map_err(|error| Trouble::failed(format!("the manual cannot be made: {error}")))?;
        super::say(&page);
        return Ok(Exit::Completed);
    };
    cli::write_manual(directory).map_err(|error| {
        Trouble::usage(format!("cannot write the manual into `{}`: {error}; name a directory that is there", directory.display()))
    })?;
    super::say(&format!("the pages are in {}; `man -M` and MANPATH find them in a directory `man1`\n", directory.display()));
    Ok(Exit::Completed)
}
