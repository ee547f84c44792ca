//! Updates the model catalogue: reads a list from a source, and checks daily for a new list.

use super::context::AppContext;
use super::models::ModelCatalog;
use crate::llm::{Catalogue, CatalogueUpdate, UpdateError};
use crate::protocol::Problem;
use crate::sys::file::private::{self, PrivateError};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::io::Read;
use std::path::{Path, PathBuf};

/// URL of the public list of models, used unless the user specifies a different source.
pub(crate) const PUBLIC_LIST: &str = "https://models.dev/api.json";
/// Minimum interval, in seconds, between two checks for a new list.
const INTERVAL: i64 = 24 * 60 * 60;
/// File in the data directory that stores the time of the last check.
const LOOKED_AT: &str = "catalogue-looked-at";

/// Source of a list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListSource {
    /// A URL that was validated together with the settings.
    Url(String),
    File(PathBuf),
}

impl ListSource {
    /// Parses a source specified by the user. A source without a URL scheme is treated as a file.
    pub(crate) fn parse(given: &str) -> Result<Self, Problem> {
        if given.contains("://") {
            crate::config::check_list_url(given)?;
            return Ok(Self::Url(given.to_owned()));
        }
        let path = std::path::absolute(given).map_err(|error| Problem::new(format!("`{given}`")).because(error))?;
        Ok(Self::File(path))
    }

    fn origin(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::File(path) => url::Url::from_file_path(path).map_or_else(|()| "file:///".to_owned(), |url| url.to_string()),
        }
    }
}

/// Reads a list and compares it with the catalogue that is in use.
pub(crate) async fn read(source: &ListSource, app: &AppContext, in_use: &Catalogue) -> Result<CatalogueUpdate, Problem> {
    let bytes = match source {
        ListSource::Url(url) => download(url, app).await?,
        ListSource::File(path) => read_file(path)?,
    };
    let origin = source.origin();
    CatalogueUpdate::read(&bytes, &origin, in_use, today()).map_err(|error| {
        let problem = Problem::new(format!("the list from `{origin}` was not used")).because(&error);
        match error {
            UpdateError::Malformed(_) => {
                problem.hint("nothing was changed; the list must be a TOML catalogue or the models.dev JSON")
            }
            UpdateError::Older { .. } => problem.hint("nothing was changed; the catalogue in use is newer"),
            UpdateError::InFuture { .. } => {
                problem.hint("nothing was changed; check this machine's clock, and the date of the list")
            }
        }
    })
}

/// Returns the current date in UTC, which published lists use as well.
fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

fn read_file(path: &Path) -> Result<Vec<u8>, Problem> {
    let cannot = |error: std::io::Error| Problem::new(format!("cannot read `{}`", path.display())).because(error);
    let file = std::fs::File::open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(Problem::new(format!("`{}` is not a regular file", path.display())));
    }
    let mut bytes = Vec::new();
    file.take(CatalogueUpdate::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

async fn download(url: &str, app: &AppContext) -> Result<Vec<u8>, Problem> {
    let document = super::download::download(url, app.download_timeouts(), CatalogueUpdate::MAX_BYTES).await;
    document.map_err(|problem| problem.hint("nothing was changed; try again later"))
}

/// If the user enabled daily checks and the last one was at least a day ago, checks for a new list. Returns a message
/// for the user, but does not change the catalogue.
pub(crate) async fn daily_look(app: &AppContext) -> Option<String> {
    let list = app.settings.model_list();
    let url = list.catalogue_url.filter(|_| list.check_daily)?;
    let stamp = app.directories.shared.join(LOOKED_AT);
    if !is_due(last_look(&stamp), Timestamp::now()) {
        return None;
    }
    // Record the check before the download, so that a server that is down does not receive a request at every start.
    record_check(&stamp);
    let source = ListSource::parse(&url).ok()?;
    let catalogue = ModelCatalog::new(app).catalogue().ok()?;
    match read(&source, app, &catalogue).await {
        Ok(update) if update.changes.is_empty() => None,
        Ok(update) => {
            let count = crate::protocol::format_count(update.changes.len() as u64, "change", "changes");
            Some(format!("the model catalogue has {count}; run `aye models update` to review and apply them"))
        }
        Err(problem) => {
            tracing::info!(message = problem.one_line(), "no new model catalogue");
            None
        }
    }
}

/// Returns whether at least a day has passed since the last check. If the last check appears to be in the future
/// because of a wrong clock, also returns `true`.
fn is_due(last: Option<Timestamp>, now: Timestamp) -> bool {
    last.is_none_or(|last| last > now || now.as_second() - last.as_second() >= INTERVAL)
}

fn last_look(stamp: &Path) -> Option<Timestamp> {
    let text = private::read(stamp, 100).ok()??;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

fn record_check(stamp: &Path) {
    let now = format!("{}\n", Timestamp::now());
    if let Err(error) = private::update::<PrivateError>(stamp, 100, |_| Ok(Some(now.into_bytes()))) {
        tracing::warn!(%error, "cannot save the time of the last catalogue check");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_check_is_due_after_a_day_or_if_the_last_one_is_in_the_future() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let day = 86_400;
        for (last, now, due) in [
            (None, 10 * day, true),
            (Some(10 * day), 10 * day + 3_600, false),
            (Some(10 * day), 11 * day, true),
            (Some(20 * day), 10 * day, true),
        ] {
            assert_eq!(is_due(last.map(at), at(now)), due, "{last:?} {now}");
        }
    }

    #[test]
    fn sources_are_files_https_urls_or_loopback_urls() {
        assert_eq!(
            ListSource::parse("https://models.dev/api.json").unwrap(),
            ListSource::Url("https://models.dev/api.json".to_owned())
        );
        assert_eq!(ListSource::parse("/lists/x.toml").unwrap(), ListSource::File("/lists/x.toml".into()));
        assert!(ListSource::parse("http://127.0.0.1:8080/x.toml?y=1").is_ok());
        for url in ["http://lists.example/x.toml", "ftp://lists.example/x", "https://me:secret@lists.example/x", "https://"] {
            assert!(ListSource::parse(url).is_err(), "{url}");
        }
    }
}
