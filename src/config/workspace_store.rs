//! Settings for the object store for sessions: its address and encryption.

use super::ConfigError;
use super::file::{self, Values};
use super::{address, schema};
use crate::protocol::Problem;

/// Kind of object store, as given by the URL scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// Amazon S3 or a compatible server (`s3://`).
    S3,
    /// Google Cloud Storage (`gs://`).
    Google,
    /// Azure Blob Storage (`az://`).
    Azure,
    /// Directory, which may be on a network file system (`file://`).
    Directory,
}

/// URL scheme and kind of each store, with the environment variables that contain its secrets.
const KINDS: &[(&str, StoreKind, &[&str])] = &[
    ("s3", StoreKind::S3, &["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]),
    ("gs", StoreKind::Google, &["GOOGLE_SERVICE_ACCOUNT_KEY"]),
    (
        "az",
        StoreKind::Azure,
        &["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CLIENT_SECRET"],
    ),
    ("file", StoreKind::Directory, &[]),
];

/// Object store for sessions. Its credentials come only from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceStore {
    pub kind: StoreKind,
    /// Bucket or container. Empty if the store is a directory.
    pub bucket: String,
    /// Prefix of all object names, in which `/` separates the components. If the store is a directory, its absolute
    /// path.
    pub prefix: String,
    /// URL of a compatible server or an emulator, if one is used.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// Kind of server-side encryption: `AES256`, `aws:kms` or `aws:kms:dsse`.
    pub encryption: Option<String>,
    pub kms_key: Option<String>,
}

impl WorkspaceStore {
    /// Reads the settings. Returns `None` if no store is configured.
    pub(super) fn from_values(values: &Values) -> Result<Option<Self>, ConfigError> {
        let path = |key: &'static str| ["services", "workspace", key];
        let text = |key| file::text(values, &path(key)).map(str::to_owned);
        let wrong = |key, problem: Problem| {
            let origin = file::entry(values, &path(key)).map(|entry| entry.origin.to_string()).unwrap_or_default();
            ConfigError::single(problem.with_location(format!("{origin}: `services.workspace.{key}`")))
        };
        let Some(url) = text("url") else { return Ok(None) };
        let (kind, bucket, prefix) = parse(&url).map_err(|problem| wrong("url", problem))?;
        let endpoint = text("endpoint").map(|given| address::check(&given).map_err(|problem| wrong("endpoint", problem)));
        let store = Self {
            kind,
            bucket,
            prefix,
            endpoint: endpoint.transpose()?,
            region: text("region"),
            encryption: text("encryption"),
            kms_key: text("kms_key"),
        };
        for (key, is_set) in [
            ("endpoint", store.endpoint.is_some() && kind == StoreKind::Directory),
            ("region", store.region.is_some() && kind != StoreKind::S3),
            ("encryption", store.encryption.is_some() && kind != StoreKind::S3),
            ("kms_key", store.kms_key.is_some() && kind != StoreKind::S3),
        ] {
            if is_set {
                let problem = Problem::new(format!("`{key}` does not apply to `{}`", store.url()));
                return Err(wrong(key, problem.hint(format!("remove `services.workspace.{key}`"))));
            }
        }
        if store.kms_key.is_some() && !store.encryption.as_deref().is_some_and(|kind| kind.starts_with("aws:kms")) {
            let problem = Problem::new("`kms_key` needs `encryption = \"aws:kms\"` or `\"aws:kms:dsse\"`");
            return Err(wrong("kms_key", problem));
        }
        Ok(Some(store))
    }

    /// Returns the store that contains a single object, and the object's name. Everything else is configured through
    /// the environment.
    pub(super) fn of_object(values: &Values, path: &[&str], url: &str) -> Result<(Self, String), ConfigError> {
        let wrong = |problem: Problem| {
            let origin = file::entry(values, path).map(|entry| entry.origin.to_string()).unwrap_or_default();
            ConfigError::single(problem.with_location(format!("{origin}: `{}`", path.join("."))))
        };
        let (kind, bucket, whole) = parse(url).map_err(wrong)?;
        let (prefix, name) = whole.rsplit_once('/').unwrap_or(("", &whole));
        if name.is_empty() {
            let problem = Problem::new(format!("`{url}` names no object"));
            return Err(wrong(problem.hint("add the name of the object: `s3://BUCKET/bundle.tar.gz`")));
        }
        let (prefix, name) = (prefix.to_owned(), name.to_owned());
        Ok((Self { kind, bucket, prefix, endpoint: None, region: None, encryption: None, kms_key: None }, name))
    }

    /// Returns the store's URL without a trailing slash: `s3://bucket/prefix`.
    pub(crate) fn url(&self) -> String {
        let scheme = KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |(scheme, ..)| scheme);
        match (self.bucket.is_empty(), self.prefix.is_empty()) {
            (true, _) => format!("{scheme}://{}", self.prefix),
            (false, true) => format!("{scheme}://{}", self.bucket),
            (false, false) => format!("{scheme}://{}/{}", self.bucket, self.prefix),
        }
    }

    /// Returns whether the store is accessed over unencrypted HTTP, which is possible only on this machine.
    pub(crate) fn is_plain_http(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"))
    }

    /// Returns the environment variables that contain the store's secrets. They are not passed on to commands.
    pub(super) fn secret_variables(values: &Values) -> &'static [&'static str] {
        let url = file::text(values, &["services", "workspace", "url"]).unwrap_or_default();
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        KINDS.iter().find(|(known, ..)| *known == scheme).map_or(&[], |(_, _, secrets)| secrets)
    }
}

/// Splits a URL into the kind of store, the bucket and the prefix.
fn parse(url: &str) -> Result<(StoreKind, String, String), Problem> {
    let hint = "use `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`";
    let wrong = |why: &str| Problem::new(format!("invalid URL `{}`", url.escape_debug())).because(why).hint(hint);
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("the scheme is missing"))?;
    let known = KINDS.iter().find(|(known, ..)| *known == scheme);
    let (_, kind, _) = known.ok_or_else(|| wrong("the scheme is unknown"))?;
    if rest.contains(['?', '#', '@', '\\']) || rest.chars().any(char::is_control) {
        return Err(wrong("the URL contains a query, a fragment, a user name or a control character"));
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    if prefix.split('/').any(|name| matches!(name, "." | "..") || name.is_empty() && !prefix.is_empty()) {
        return Err(wrong("the path contains an empty name, `.` or `..`"));
    }
    if *kind == StoreKind::Directory {
        return match (bucket, prefix) {
            ("", "") => Err(wrong("the directory is missing")),
            ("", path) => Ok((*kind, String::new(), format!("/{path}"))),
            _ => Err(wrong("the directory must be absolute: three slashes after `file:`")),
        };
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'$');
    if bucket.is_empty() || !bucket.bytes().all(is_plain) {
        return Err(wrong("the name of the bucket is missing or invalid"));
    }
    Ok((*kind, bucket.to_owned(), prefix.to_owned()))
}

/// Returns whether artifacts are uploaded together with the results that refer to them.
pub(super) fn uploads_artifacts(values: &Values) -> bool {
    let path = ["services", "workspace", "artifacts"];
    file::flag(values, &path).unwrap_or_else(|| schema::default_flag(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<WorkspaceStore>, ConfigError> {
        WorkspaceStore::from_values(&file::parse(text, std::path::Path::new("config.toml")).unwrap())
    }

    #[test]
    fn store_urls_contain_a_kind_a_bucket_and_a_prefix() {
        for (url, kind, bucket, prefix) in [
            ("s3://team", StoreKind::S3, "team", ""),
            ("s3://team/aye/x/", StoreKind::S3, "team", "aye/x"),
            ("gs://team.example/aye", StoreKind::Google, "team.example", "aye"),
            ("az://container/aye", StoreKind::Azure, "container", "aye"),
            ("file:///srv/aye/", StoreKind::Directory, "", "/srv/aye"),
        ] {
            let store = read(&format!("[services.workspace]\nurl = \"{url}\"\n")).unwrap().unwrap();
            assert_eq!((store.kind, store.bucket.as_str(), store.prefix.as_str()), (kind, bucket, prefix), "{url}");
            assert_eq!(store.url(), url.trim_end_matches('/'), "{url}");
        }
        assert_eq!(read("").unwrap(), None);
    }

    #[test]
    fn invalid_store_settings_are_rejected_with_their_key_and_reason() {
        for (settings, key, why) in [
            ("url = \"team\"", "url", "scheme is missing"),
            ("url = \"ftp://team\"", "url", "scheme is unknown"),
            ("url = \"s3://\"", "url", "missing or invalid"),
            ("url = \"s3://team/a/../b\"", "url", "`..`"),
            ("url = \"s3://team/a//b\"", "url", "empty name"),
            ("url = \"s3://key:secret@team\"", "url", "user name"),
            ("url = \"file://srv/aye\"", "url", "absolute"),
            ("url = \"file:///\"", "url", "directory is missing"),
            ("url = \"s3://team\"\nendpoint = \"http://store.example\"", "endpoint", "unencrypted"),
            ("url = \"file:///srv\"\nendpoint = \"http://127.0.0.1:1\"", "endpoint", "does not apply"),
            ("url = \"gs://team\"\nregion = \"eu\"", "region", "does not apply"),
            ("url = \"s3://team\"\nkms_key = \"k\"", "kms_key", "needs `encryption"),
        ] {
            let error = read(&format!("[services.workspace]\n{settings}\n")).unwrap_err().to_string();
            assert!(error.contains(&format!("`services.workspace.{key}`")) && error.contains(why), "{settings}: {error}");
        }
    }
}
