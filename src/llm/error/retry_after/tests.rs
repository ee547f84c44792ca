use super::*;

/// Returns Wed, 21 Oct 2015 07:26:40 GMT.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_400)
}

fn hints(headers: &[(&str, &'static str)]) -> RetryHints {
    parse_headers(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value), now())
}

const S: u64 = 1000;

/// Response headers, and the delay in milliseconds that they imply.
type Case = (&'static [(&'static str, &'static str)], Option<u64>);

#[test]
fn retry_after_is_parsed_in_every_format() {
    let cases: &[Case] = &[
        (&[("retry-after", "7")], Some(7 * S)),
        (&[("retry-after", " 0.5 ")], Some(500)),
        (&[("retry-after", "0")], Some(0)),
        (&[("retry-after", "30s")], Some(30 * S)),
        (&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], Some(80 * S)),
        (&[("retry-after", "Wed, 21 Oct 2009 07:28:00 GMT")], Some(0)),
        (&[("retry-after", "2015-10-21T07:28:00Z")], Some(80 * S)),
        // The server's clock is one hour ahead.
        (&[("retry-after", "Wed, 21 Oct 2015 08:28:00 GMT"), ("date", "Wed, 21 Oct 2015 08:27:30 GMT")], Some(30 * S)),
        (&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), ("date", "yesterday")], Some(80 * S)),
        (&[("retry-after-ms", "1500"), ("retry-after", "1")], Some(1500)),
        (&[("retry-after-ms", "0"), ("retry-after", "1")], Some(S)),
        (&[("retry-after-ms", "-5"), ("retry-after", "2")], Some(2 * S)),
        (&[("retry-after-ms", "NaN"), ("retry-after", "2")], Some(2 * S)),
        (&[("x-ms-retry-after-ms", "250")], Some(250)),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "-3")], None),
        (&[("retry-after", "-1.5s")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "1e308")], Some(366 * 86_400 * S)),
        (&[("retry-after", "99999999999999999999999999")], Some(366 * 86_400 * S)),
        (&[("retry-after", "Thu, 31 Dec 9998 23:59:59 GMT")], Some(366 * 86_400 * S)),
        (&[], None),
    ];
    for (headers, wait) in cases {
        assert_eq!(hints(headers).wait, wait.map(Duration::from_millis), "{headers:?}");
    }
}

#[test]
fn rate_limit_headers_give_the_reset_time_of_the_exhausted_limit() {
    let cases: &[Case] = &[
        (&[("x-ratelimit-reset-requests", "1s")], Some(S)),
        (&[("x-ratelimit-reset-requests", "6m0s")], Some(360 * S)),
        (&[("x-ratelimit-reset-tokens", "20ms")], Some(20)),
        (&[("x-ratelimit-reset-tokens", "2m59.56s")], Some(179_560)),
        (&[("x-ratelimit-reset-tokens", "12")], Some(12 * S)),
        (&[("x-ratelimit-reset-requests", "17h"), ("x-ratelimit-reset-tokens", "3s")], Some(17 * 3600 * S)),
        (
            &[
                ("x-ratelimit-reset-requests", "17h"),
                ("x-ratelimit-remaining-requests", "400"),
                ("x-ratelimit-reset-tokens", "3s"),
                ("x-ratelimit-remaining-tokens", "0"),
            ],
            Some(3 * S),
        ),
        // No limit is exhausted, so the cause is unknown.
        (&[("x-ratelimit-reset-tokens", "3s"), ("x-ratelimit-remaining-tokens", "9")], None),
        (
            &[
                ("anthropic-ratelimit-input-tokens-reset", "2015-10-21T07:27:00Z"),
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ],
            Some(20 * S),
        ),
        (&[("x-ratelimit-reset", "1445412460")], Some(60 * S)),
        (&[("x-ratelimit-reset", "1445412460000")], Some(60 * S)),
        (&[("x-ratelimit-reset", "1e300")], None),
        (&[("ratelimit-reset", "-1")], None),
        (&[("x-ratelimit-reset-tokens", "2s and a bit")], None),
    ];
    for (headers, wait) in cases {
        assert_eq!(hints(headers).limits, wait.map(Duration::from_millis), "{headers:?}");
    }
}

#[test]
fn the_should_retry_header_is_parsed() {
    for (text, again) in [("true", Some(true)), ("false", Some(false)), ("perhaps", None)] {
        assert_eq!(hints(&[("x-should-retry", text)]).again, again);
    }
}

#[test]
fn the_delay_is_read_from_fields_or_the_message_of_the_body() {
    let google = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.5s"}]}}"#;
    let cases = [
        (google, "", Some(38_500)),
        (r#"{"error":{"metadata":{"retry_after_seconds":4}}}"#, "", Some(4 * S)),
        (r#"{"retry_delay":{"seconds":"3","nanos":500000000}}"#, "", Some(3500)),
        (r#"{"retry_after":-4}"#, "", None),
        (r#"{"retry_after":"whenever"}"#, "Please retry after 2 seconds", Some(2 * S)),
        ("{}", "Rate limit reached (TPM): Limit 30000, Used 29000. Please try again in 1.386s. Visit x.", Some(1386)),
        ("{}", "Please try again in 6m0s.", Some(360 * S)),
        ("{}", "Please try again in 1h2m3.5s", Some(3_723_500)),
        ("{}", "try again in 20ms", Some(20)),
        ("{}", "have exceeded token rate limit. Please retry after 26 seconds. Contact us", Some(26 * S)),
        ("{}", "Please retry after 30.", Some(30 * S)),
        ("{}", "Rate limit of 15 per 60s exceeded. Please wait 12 seconds before retrying.", Some(12 * S)),
        ("{}", "No deployments available for selected model, Try again in 5 seconds. Passed model=gpt", Some(5 * S)),
        ("{}", "Please retry in 38.0051s.", Some(38_005)),
        ("{}", "try again in 5 minutes, 3 seconds", Some(303 * S)),
        ("{}", "Please try again in a while", None),
        ("{}", "try again in -5s", None),
        ("{}", "try again in 999999999999999999999999999999 days", Some(366 * 86_400 * S)),
        ("{}", "try again in ..", None),
        ("{}", "retry after \u{1F600} 5", None),
    ];
    for (body, message, wait) in cases {
        let body = serde_json::from_str(body).unwrap();
        let found = requested_wait(Some(&body), message).map(|wait| wait.as_millis());
        assert_eq!(found, wait.map(u128::from), "{body} {message}");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC*", header in "[-0-9a-zA-Z:., +]*") {
        let _ = requested_wait(None, &format!("try again in {text}"));
        let header: &'static str = Box::leak(header.into_boxed_str());
        let _ = parse_headers(|_| Some(header), now());
    }
}
