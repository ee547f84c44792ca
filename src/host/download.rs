//! Download of a small public document, such as a list of models or the index of releases.

use crate::protocol::Problem;
use crate::sys::http::{HttpError, Server, Timeouts};
use std::time::Duration;

/// Time for the whole download.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the document at a URL that passed `config::check_list_url`. Redirects are not followed.
///
/// # Errors
///
/// The server cannot be reached or does not send the document in time, or the document is larger than `most_bytes`.
pub(crate) async fn download(given: &str, timeouts: Timeouts, most_bytes: usize) -> Result<Vec<u8>, Problem> {
    let cannot = |why: &dyn std::fmt::Display| Problem::new(format!("cannot download `{given}`")).because(why);
    let failed = |error: &HttpError| {
        let problem = cannot(error);
        if is_about_time(&error.to_string()) { problem.hint("check the clock of this machine") } else { problem }
    };
    let url = url::Url::parse(given).map_err(|error| cannot(&error))?;
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let origin = &url[..url::Position::BeforePath];
    let server = Server::new(origin, timeouts).map_err(|error| cannot(&error))?;
    let all = async {
        let reply = server.get(path, &Vec::new()).await.map_err(|error| failed(&error))?;
        match reply.status() {
            200..300 => {
                let body = reply.into_body(most_bytes).await.map_err(|error| failed(&error))?;
                body.ok_or_else(|| cannot(&format!("the file is larger than {}", crate::protocol::size(most_bytes as u64))))
            }
            300..400 => {
                let target = reply.header("location").unwrap_or_default().to_owned();
                Err(cannot(&format!("{}, a redirect to `{target}`, which is not followed", reply.status_line())))
            }
            _ => Err(cannot(&reply.status_line())),
        }
    };
    tokio::time::timeout(TIMEOUT, all)
        .await
        .unwrap_or_else(|_| Err(cannot(&format!("no response within {} s", TIMEOUT.as_secs()))))
}

/// Returns whether a certificate was rejected because of its dates, which means that the clock of one of the two machines is
/// wrong.
fn is_about_time(error: &str) -> bool {
    let error = error.to_lowercase();
    error.contains("certificate") && ["expired", "not valid yet", "notvalidyet"].iter().any(|word| error.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_another_time_is_told_from_other_errors() {
        use rustls::CertificateError::{Expired, NotValidYet, UnknownIssuer};
        let message = |reason| HttpError::Unreachable {
            server: "dl.example".to_owned(),
            reason: format!("TLS: {}", rustls::Error::InvalidCertificate(reason)),
        };
        assert!(is_about_time(&message(Expired).to_string()));
        assert!(is_about_time(&message(NotValidYet).to_string()));
        assert!(!is_about_time(&message(UnknownIssuer).to_string()));
        assert!(!is_about_time("the lease of dl.example has expired"));
    }
}
