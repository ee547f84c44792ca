//! Reads the release index, which describes the newest version and its files, and compares the version with this build.

use super::context::AppContext;
use super::download::download;
use crate::config::check_list_url;
use crate::protocol::Problem;
use jiff::civil::Date;
use semver::Version;
use serde::Deserialize;
use std::cmp::Ordering;
use url::Url;

/// Version of this program.
pub(crate) const INSTALLED: &str = env!("CARGO_PKG_VERSION");
/// URL of the index, set at build time. Builds from source have none.
const BUILT_IN: Option<&str> = option_env!("AYE_RELEASE_URL");
/// Newest index format that this version supports.
const FORMAT: u64 = 1;
/// Maximum size of an index in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Number of hexadecimal digits of a SHA-256 checksum.
const CHECKSUM_DIGITS: usize = 64;

/// The newest release, as described by the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub version: Version,
    pub date: Date,
    /// URL of the release notes.
    pub notes: Option<String>,
    files: Vec<ReleaseFile>,
    /// URL of the index, relative to which files are located.
    index: Url,
}

/// A release file and its SHA-256 checksum in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ReleaseFile {
    pub name: String,
    pub sha256: String,
}

/// Result of comparing a release with this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseStatus {
    UpToDate,
    UpdateAvailable,
    /// This build is newer than the newest release.
    BuildIsNewer,
}

/// Format in which the index is published.
#[derive(Deserialize)]
struct IndexFile {
    format: u64,
    version: String,
    date: String,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    files: Vec<ReleaseFile>,
}

/// Returns the URL of the index, either from the settings or, if none is set there, from build time.
pub(crate) fn url(app: &AppContext) -> Option<String> {
    let built_in = || BUILT_IN.filter(|url| !url.is_empty()).map(str::to_owned);
    app.settings.update_url().map(str::to_owned).or_else(built_in)
}

impl Release {
    /// Downloads and parses the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be downloaded, or if its format is not supported.
    pub(crate) async fn download(url: &str, app: &AppContext) -> Result<Self, Problem> {
        let bytes = download(url, app.download_timeouts(), MAX_BYTES).await?;
        Self::read(&bytes, url).map_err(|why| Problem::new(format!("`{url}` is not a release index")).because(why))
    }

    /// Parses an index. `url` is the URL from which it was downloaded.
    fn read(bytes: &[u8], url: &str) -> Result<Self, String> {
        let index: IndexFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if index.format != FORMAT {
            return Err(format!("the index has format {}, but this version of aye reads format {FORMAT}", index.format));
        }
        let version = Version::parse(&index.version).map_err(|error| format!("invalid `version`: {error}"))?;
        let date: Date = index.date.parse().map_err(|error| format!("invalid `date`: {error}"))?;
        let notes = index.notes.map(|notes| {
            check_list_url(&notes).map_err(|problem| format!("invalid `notes`: {problem}"))?;
            // The normalized form has no control characters.
            Url::parse(&notes).map(String::from).map_err(|error| format!("invalid `notes`: {error}"))
        });
        let notes = notes.transpose()?;
        if let Some(file) = index.files.iter().find(|file| !file.is_valid()) {
            return Err(format!("invalid entry in `files`: `{}`", file.name));
        }
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        Ok(Self { version, date, notes, files: index.files, index: url })
    }

    /// Compares the release with an installed version. A pre-release is older than the version itself, and build
    /// metadata is ignored.
    pub(crate) fn compare_with(&self, installed: &str) -> ReleaseStatus {
        match Version::parse(installed).map(|installed| self.version.cmp_precedence(&installed)) {
            Ok(Ordering::Equal) => ReleaseStatus::UpToDate,
            Ok(Ordering::Less) => ReleaseStatus::BuildIsNewer,
            // The version in Cargo.toml is always valid.
            Ok(Ordering::Greater) | Err(_) => ReleaseStatus::UpdateAvailable,
        }
    }

    /// Returns whether the release date is in the future, which indicates that a clock is wrong. A difference of one
    /// day is accepted because of time zones.
    pub(crate) fn is_in_future(&self, today: Date) -> bool {
        self.date > today.tomorrow().unwrap_or(today)
    }

    /// Finds a release file by name, and returns it with its URL.
    pub(crate) fn file(&self, name: &str) -> Option<(&ReleaseFile, String)> {
        let file = self.files.iter().find(|file| file.name == name)?;
        Some((file, self.index.join(&file.name).ok()?.to_string()))
    }
}

impl ReleaseFile {
    /// Returns whether an entry has a plain name and a valid checksum, which are required for showing it in a command.
    fn is_valid(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+~-".contains(&byte);
        let begins_plainly = self.name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        let has_checksum = self.sha256.len() == CHECKSUM_DIGITS && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        begins_plainly && self.name.bytes().all(is_plain) && has_checksum
    }
}

impl ReleaseStatus {
    /// Returns the name of the status, as used in JSON output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::UpToDate => "up_to_date",
            Self::UpdateAvailable => "update_available",
            Self::BuildIsNewer => "build_is_newer",
        }
    }
}

#[cfg(test)]
impl Release {
    /// Returns a release that contains these files, published at `https://dl.example/aye/`.
    pub(crate) fn for_test(version: &str, names: &[&str]) -> Self {
        let files: Vec<_> = names.iter().map(|name| serde_json::json!({"name": name, "sha256": "0".repeat(64)})).collect();
        let index = serde_json::json!({"format": 1, "version": version, "date": "2026-12-01", "files": files});
        Self::read(index.to_string().as_bytes(), "https://dl.example/aye/latest.json").unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn versions_are_compared_by_precedence_including_pre_releases() {
        use ReleaseStatus::{BuildIsNewer, UpToDate, UpdateAvailable};
        for (newest, installed, status) in [
            ("0.2.0", "0.1.0", UpdateAvailable),
            ("0.10.0", "0.9.0", UpdateAvailable),
            ("0.2.0", "0.2.0-rc.1", UpdateAvailable),
            ("0.2.0-rc.10", "0.2.0-rc.9", UpdateAvailable),
            ("0.2.0-rc.1", "0.1.9", UpdateAvailable),
            ("0.1.0", "0.1.0", UpToDate),
            ("0.1.0+build.7", "0.1.0+build.9", UpToDate),
            ("0.1.0", "0.2.0", BuildIsNewer),
            ("0.2.0-rc.1", "0.2.0", BuildIsNewer),
        ] {
            assert_eq!(Release::for_test(newest, &[]).compare_with(installed), status, "{newest} {installed}");
        }
    }

    #[test]
    fn an_index_with_any_invalid_part_is_rejected() {
        let good = json!({"format": 1, "version": "0.2.0", "date": "2026-12-01", "notes": "https://dl.example/notes",
            "files": [{"name": "aye_0.2.0~rc1_amd64.deb", "sha256": "0".repeat(64)}], "more": "ignored"});
        let read = |index: &Value| Release::read(index.to_string().as_bytes(), "https://dl.example/latest.json");
        let release = read(&good).unwrap();
        assert_eq!(release.file("aye_0.2.0~rc1_amd64.deb").unwrap().1, "https://dl.example/aye_0.2.0~rc1_amd64.deb");
        for (key, value, why) in [
            ("format", json!(2), "the index has format 2"),
            ("format", json!(null), "invalid type"),
            ("version", json!("1.0"), "invalid `version`"),
            ("version", json!("1.0.0; reboot"), "invalid `version`"),
            ("date", json!("yesterday"), "invalid `date`"),
            ("notes", json!("http://dl.example/notes"), "invalid `notes`"),
            ("files", json!([{"name": "../x", "sha256": "0".repeat(64)}]), "invalid entry in `files`: `../x`"),
            ("files", json!([{"name": "a;b", "sha256": "0".repeat(64)}]), "invalid entry in `files`: `a;b`"),
            ("files", json!([{"name": "-o", "sha256": "0".repeat(64)}]), "invalid entry in `files`: `-o`"),
            ("files", json!([{"name": "x", "sha256": "0"}]), "invalid entry in `files`: `x`"),
        ] {
            let mut index = good.clone();
            index[key] = value;
            let error = read(&index).unwrap_err();
            assert!(error.contains(why), "{index}: {error}");
        }
        for bytes in ["", "{", "[]", "<html>", "\u{0}"] {
            assert!(Release::read(bytes.as_bytes(), "https://dl.example/latest.json").is_err(), "{bytes}");
        }
    }

    #[test]
    fn dates_after_tomorrow_are_in_the_future() {
        let release = Release::for_test("0.2.0", &[]);
        let on = |text: &str| release.is_in_future(text.parse().unwrap());
        assert!(on("2026-11-29") && !on("2026-11-30") && !on("2026-12-01") && !on("2027-12-01"));
    }

    #[test]
    fn file_addresses_are_relative_to_the_index() {
        for (index, url) in [
            ("https://dl.example/aye/latest.json", "https://dl.example/aye/x.sh"),
            ("https://dl.example/latest.json?channel=stable", "https://dl.example/x.sh"),
            ("https://dl.example", "https://dl.example/x.sh"),
        ] {
            let files = json!([{"name": "x.sh", "sha256": "0".repeat(64)}]);
            let text = json!({"format": 1, "version": "0.2.0", "date": "2026-12-01", "files": files}).to_string();
            assert_eq!(Release::read(text.as_bytes(), index).unwrap().file("x.sh").unwrap().1, url);
        }
    }
}
