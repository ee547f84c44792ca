//! `aye config`: where the files are and what is set.

use super::exit::Exit;
use super::place::Place;
use super::trouble::Trouble;

pub fn path(place: &Place) -> Result<Exit, Trouble> {
    let directories = &place.directories;
    super::say(&format!(
        "config  {}\npolicy  {}\nkeys    {}\ndata    {}\n",
        directories.config_file().display(),
        directories.config.join("policy.toml").display(),
        directories.keymap_file().display(),
        directories.data.display()
    ));
    Ok(Exit::Completed)
}

pub fn show(place: &Place) -> Result<Exit, Trouble> {
    super::say(&place.settings.show());
    Ok(Exit::Completed)
}

pub fn schema() -> Result<Exit, Trouble> {
    super::say(&crate::config::schema());
    Ok(Exit::Completed)
}
