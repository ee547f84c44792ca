//! Formats HTTP responses as results for the model.

use super::readable::{Form, readable};
use crate::policy::url::{Destination, parse};
use crate::protocol::{ArtifactKind, ErrorCode, LeftOut, ToolError, size, truncate_with_gap};
use crate::sys::http::fetch::{FetchError, FetchResponse};
use crate::sys::http::{UnpackError, unpack_body};
use crate::tools::call_result::{ToolFailure, ToolOutput};
use crate::tools::output::{Kept, image_type, keep_image, keep_text, new, reading_hint};
use crate::tools::settings::ToolSettings;
use encoding_rs::{Encoding, UTF_8};
use std::fmt::Write;

/// Response headers that are useful to a model.
const SHOWN: &[&str] = &[
    "Content-Encoding",
    "Content-Range",
    "Location",
    "Retry-After",
    "Link",
    "Allow",
    "WWW-Authenticate",
    "ETag",
    "Last-Modified",
];
const HEADER_CHARACTERS: usize = 1000;
/// Number of bytes of a page that are searched for its encoding.
const META_BYTES: usize = 1024;

/// Formats the status, headers and body of a response.
pub(super) fn format_response(
    mut answer: FetchResponse,
    asked: &Destination,
    form: Option<Form>,
    settings: &ToolSettings,
) -> Result<ToolOutput, ToolFailure> {
    let mut text = format!("HTTP {}\n", answer.status_line);
    let mut line = |name: &str, value: &str| {
        let value: String = value.chars().take(HEADER_CHARACTERS).collect();
        let _ = writeln!(text, "{name}: {value}");
    };
    if let Some(kind) = answer.header("content-type") {
        line("Content-Type", kind);
    }
    let length = answer.header("content-length").map(str::to_owned);
    let counted = || (!answer.body.is_empty()).then(|| answer.body.len().to_string());
    if let Some(length) = length.or_else(counted) {
        line("Content-Length", &length);
    }
    for name in SHOWN {
        if let Some(value) = answer.header(&name.to_ascii_lowercase()) {
            line(name, value);
        }
    }
    if answer.redirects > 0 {
        let _ = writeln!(text, "[redirected to {}]", answer.url);
    }
    let redirects = answer.status_line.starts_with('3');
    if let Some(location) = answer.header("location").filter(|_| redirects) {
        let from = if answer.redirects == 0 { asked.as_str() } else { answer.url.as_str() };
        let to = parse(from)
            .and_then(|from| from.redirect_target(location))
            .map_or_else(|_| location.to_owned(), |to| to.as_str().to_owned());
        let _ = writeln!(
            text,
            "[redirect not followed: the target is another server, which needs its own approval; request {to} if you need it]"
        );
    }
    text.push('\n');
    let mut told = body(&mut answer, form, settings)?;
    text.push_str(&told.text);
    told.text = text.trim_end_matches('\n').to_owned();
    Ok(told)
}

fn body(answer: &mut FetchResponse, form: Option<Form>, settings: &ToolSettings) -> Result<ToolOutput, ToolFailure> {
    let kind = answer.header("content-type").unwrap_or("unknown type").to_owned();
    let packed = answer.header("content-encoding").unwrap_or_default().to_owned();
    let bytes = std::mem::take(&mut answer.body);
    let length = bytes.len();
    if length == 0 {
        return Ok(ToolOutput::default());
    }
    let bytes = match unpack_body(bytes, &packed, ANSWER_BYTES) {
        Ok(bytes) => bytes,
        // The timeout is irrelevant for this error.
        Err(UnpackError::TooLarge) => return Err(fetch_failure(&FetchError::TooLarge { max_bytes: ANSWER_BYTES }, 0)),
        Err(UnpackError::Packed(why)) => return Ok(format!("Compressed body ({packed}), {length} bytes, {kind}; {why}").into()),
    };
    if let Some(media_type) = image_type(&bytes) {
        return Ok(store_image(&bytes, media_type, &answer.url, settings));
    }
    let Some(decoded) = decode(&bytes, &kind) else {
        return Ok(format!("Binary body, {} bytes, {kind}", bytes.len()).into());
    };
    let (shown, content_type) = match form.filter(|_| is_page(&kind, &decoded)) {
        Some(form) => {
            let readable = readable(&decoded, &answer.url, form);
            let is_markdown = form == Form::Markdown;
            (readable, if is_markdown { "text/markdown" } else { "text/plain" })
        }
        None => (decoded, kind.split(';').next().unwrap_or("text/plain").trim()),
    };
    let limit = settings.max_output_bytes;
    let new = new(ArtifactKind::ToolOutput, &format!("response of {}", answer.url), content_type);
    let kept = keep_text(settings, new, &shown);
    let (text, gap) = truncate_with_gap(&shown, limit);
    let mut text = text.into_owned();
    if let Some(kept) = kept.as_ref().filter(|_| shown.len() > limit) {
        let _ = write!(text, "\n{}", reading_hint("the whole body", kept));
    }
    let left_out = LeftOut::from_gaps(gap.into_iter().collect(), None);
    Ok(ToolOutput { text, artifacts: kept.and_then(Result::ok).into_iter().collect(), left_out, ..ToolOutput::default() })
}

fn store_image(bytes: &[u8], media_type: &str, url: &str, settings: &ToolSettings) -> ToolOutput {
    let told = format!("Image, {} bytes, {media_type}", bytes.len());
    let Some(artifacts) = &settings.session.artifacts else { return told.into() };
    match keep_image(&**artifacts, bytes, &format!("image of {url}"), media_type) {
        Ok(artifact) => {
            let text = format!("{told}\n[stored as {} ({}); view it with ReadFile]", artifact.uri, size(artifact.bytes));
            ToolOutput { text, artifacts: vec![artifact], ..ToolOutput::default() }
        }
        Err(error) => reading_hint("the image", &Kept::Err(error.message)).into(),
    }
}

fn is_page(kind: &str, text: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => true,
        "unknown type" => {
            let start: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
            start.starts_with("<!doctype html") || start.starts_with("<html")
        }
        _ => false,
    }
}

/// Decodes a body in its own encoding. Returns `None` if it is not text.
fn decode(bytes: &[u8], kind: &str) -> Option<String> {
    let mut parts = kind.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let of_page = || if essence.ends_with("html") || essence.ends_with("xml") { declared_encoding(bytes) } else { None };
    let named = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| Encoding::for_label(charset?.as_bytes()))
        .or_else(of_page);
    let declared = named.is_some()
        || essence.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-www-form-urlencoded"].iter().any(|end| essence.ends_with(end));
    let (text, _, malformed) = named.unwrap_or(UTF_8).decode(bytes);
    (!text.contains('\0') && (declared || !malformed)).then(|| text.into_owned())
}

/// Returns the encoding that a page declares, either with `<meta charset=…>` or in an XML declaration.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..META_BYTES.min(bytes.len())]).to_ascii_lowercase();
    let label = |sign: &str| {
        let after = &start[start.find(sign)? + sign.len()..];
        let after = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = after.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_:.".contains(letter))).unwrap_or(after.len());
        Encoding::for_label(&after.as_bytes()[..end])
    };
    let found = label("charset").or_else(|| label("encoding"))?;
    // A page is not UTF-16 if its declaration is readable as single bytes.
    Some(if found == encoding_rs::UTF_16LE || found == encoding_rs::UTF_16BE { UTF_8 } else { found })
}

/// Maximum response size in bytes.
pub(super) const ANSWER_BYTES: usize = 10 * 1024 * 1024;

pub(super) fn fetch_failure(error: &FetchError, timeout_seconds: u64) -> ToolFailure {
    let (code, hint) = match error {
        FetchError::Invalid(_) => (ErrorCode::InvalidRequest, String::new()),
        FetchError::Refused(_) => (ErrorCode::PolicyDenied, String::new()),
        FetchError::RedirectDenied { reason, rule } => return ToolError::from_rule(reason, rule, "").into(),
        FetchError::Setup(_) => (ErrorCode::ToolExecutionFailed, "; ask the user to check this system's certificates".to_owned()),
        FetchError::NoAddress { .. } => (ErrorCode::ToolExecutionFailed, "; check the spelling of the host name".to_owned()),
        FetchError::Unreachable { .. } => (
            ErrorCode::ToolExecutionFailed,
            "; aye connects directly, without a proxy; check the address, or try later".to_owned(),
        ),
        FetchError::Cut { .. } => {
            (ErrorCode::ToolExecutionFailed, "; the request may have taken effect; retry only if repeating it is safe".to_owned())
        }
        FetchError::TooLarge { .. } => {
            (ErrorCode::ToolExecutionFailed, "; request part of it with a `Range` header, or use another URL".to_owned())
        }
        FetchError::TooManyRedirects(_) => {
            (ErrorCode::ToolExecutionFailed, "; request that URL directly if it is the right one".to_owned())
        }
        FetchError::TimedOut(_) => {
            let hint = if timeout_seconds < MAX_TIMEOUT_SECONDS {
                format!("; if it needs longer, set `timeout` (at most {MAX_TIMEOUT_SECONDS})")
            } else {
                String::new()
            };
            (ErrorCode::ToolExecutionTimeout, hint)
        }
        FetchError::Cancelled => (ErrorCode::Cancelled, String::new()),
    };
    ToolError::new(code, format!("{error}{hint}")).into()
}

pub(super) const MAX_TIMEOUT_SECONDS: u64 = 300;
