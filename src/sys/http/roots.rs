//! Certificate authorities that are trusted in addition to the system's, from the PEM file set in `http.ca_bundle`.

use super::HttpError;
use crate::sys::file;
use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Maximum size of the PEM file in bytes. All public authorities together need less than a tenth of that.
const MAX_BYTES: u64 = 4 << 20;

static BUNDLE: OnceLock<PathBuf> = OnceLock::new();

/// Sets the PEM file for all HTTP clients in this process. Only the first call has an effect. The file is not read
/// until a client needs it.
pub(crate) fn trust_also(path: PathBuf) {
    let _ = BUNDLE.set(path);
}

/// Returns the number of authorities in a PEM file, or the reason why the file cannot be used.
pub(crate) fn count_authorities(path: &Path) -> Result<usize, String> {
    authorities(path).map(|authorities| authorities.len())
}

/// Adds the authorities from the configured PEM file to a client, if one is set.
pub(super) fn with_authorities(builder: reqwest::ClientBuilder) -> Result<reqwest::ClientBuilder, HttpError> {
    match BUNDLE.get() {
        Some(path) => trusting(builder, path),
        None => Ok(builder),
    }
}

/// Adds the authorities from a PEM file to a client.
pub(super) fn trusting(builder: reqwest::ClientBuilder, path: &Path) -> Result<reqwest::ClientBuilder, HttpError> {
    let bundle = |reason: String| HttpError::Bundle { path: path.display().to_string(), reason };
    let certificate = |der: CertificateDer<'static>| Certificate::from_der(&der).map_err(|error| bundle(error.to_string()));
    let certificates = authorities(path).map_err(bundle)?.into_iter().map(certificate);
    Ok(builder.tls_certs_merge(certificates.collect::<Result<Vec<_>, _>>()?))
}

fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = file::read(path, MAX_BYTES).map_err(|error| error.to_string())?;
    let mut store = RootCertStore::empty();
    let mut authorities = Vec::new();
    for (number, der) in CertificateDer::pem_slice_iter(&bytes).enumerate() {
        let number = number + 1;
        let der = der.map_err(|error| format!("certificate {number} is not valid PEM: {error}"))?;
        store.add(der.clone()).map_err(|error| format!("certificate {number} is not usable: {error}"))?;
        authorities.push(der);
    }
    if authorities.is_empty() {
        return Err("the file contains no certificate; expected PEM, with `-----BEGIN CERTIFICATE-----`".to_owned());
    }
    Ok(authorities)
}
