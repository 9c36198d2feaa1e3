//! Who sees what, and that strangers' names are text and nothing goes elsewhere.

use super::browser::Browser;
use super::fixture::{Fixture, LIVE, TOKEN};

const NOTICE: &str = "document.getElementById('withheld').innerText";
const LOOPBACK_HIDDEN: &str = "document.getElementById('access-loopback').hidden";
const WHOLE: &str = "document.documentElement.outerHTML";

#[test]
fn on_the_loopback_the_page_shows_the_browsers_user_its_processes() {
    let test = "page::withheld::on_the_loopback_the_page_shows_the_browsers_user_its_processes";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("an-own-name", "--an-own-command", 0);
    fixture.serve("0.2", false, "loopback_users = true\n");
    fixture.open(browser, None);
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
    let row = browser.text("document.querySelector('#processes tbody').innerText");
    assert!(row.contains("an-own-name") && row.contains("--an-own-command"), "{row}");
    assert_eq!(browser.value("document.getElementById('withheld').hidden"), true);
    assert_eq!(browser.value(LOOPBACK_HIDDEN), false);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A wrong token and the right one, here and in another tab, which is the one that is looked at from then on.
fn tokens(browser: &mut Browser, fixture: &Fixture) {
    // A wrong token is reported, and the page says where the right one is.
    browser.value("document.getElementById('withheld-token').click()");
    assert!(browser.text("document.getElementById('access').innerText").contains("--token-file"));
    browser.write("a-wrong-word-0123456789");
    browser.press("Enter");
    browser.until("document.getElementById('connection-state').textContent.includes('refused')");
    browser.value("document.getElementById('token-button').click()");
    let note = browser.text("document.getElementById('access-note').textContent");
    assert_eq!(note, "The service does not take this token.");
    browser.value("document.getElementById('token').select()");
    browser.write(TOKEN);
    browser.press("Enter");
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
    let row = browser.text("document.querySelector('#processes tbody').innerText");
    assert!(row.contains("a-secret-name") && row.contains("--a-secret-command"), "{row}");
    assert_eq!(browser.value("document.getElementById('withheld').hidden"), true);

    // Another tab of the same service has it too.
    browser.another_tab();
    fixture.open(browser, None);
    browser.until("document.querySelectorAll('#processes tbody tr').length === 1");
}

#[test]
fn processes_are_for_who_has_the_token_and_the_page_reports_it() {
    let test = "page::withheld::processes_are_for_who_has_the_token_and_the_page_reports_it";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.work("a-secret-name", "--a-secret-command", 0);
    fixture.serve("0.2", true, "");
    fixture.open(browser, None);
    browser
        .until("document.getElementById('withheld').innerText.includes('1 process is not shown')");
    let notice = browser.text(NOTICE);
    assert!(
        notice.contains("names, users and command lines") && notice.contains("token"),
        "{notice}"
    );
    assert!(!browser.text(WHOLE).contains("a-secret"), "names are withheld");
    assert_eq!(browser.value("document.querySelectorAll('#processes tbody tr').length"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());

    tokens(browser, &fixture);

    // With details open, so that the history was asked too. The token is in no address and on no page.
    browser.value("document.querySelector('#processes tbody .open').click()");
    browser.until("document.getElementById('panel-facts').innerText.includes('a-secret-command')");
    browser.until(
        "performance.getEntriesByType('resource').some(({ name }) => name.includes('process='))",
    );
    assert!(
        browser.requests.iter().all(|address| !address.contains(TOKEN)),
        "{:?}",
        browser.requests
    );
    assert!(!browser.text(WHOLE).contains(TOKEN));
    assert!(
        !browser
            .text("location.href + document.cookie + JSON.stringify(localStorage)")
            .contains(TOKEN)
    );

    // Forgotten, the names go too.
    browser.press("Escape");
    browser.value("document.getElementById('token-button').click()");
    browser.value("document.getElementById('token-forget').click()");
    browser.until("document.querySelectorAll('#processes tbody tr').length === 0");
    assert_eq!(browser.value("sessionStorage.length"), 0);
    assert!(!browser.text(WHOLE).contains("a-secret"));
    let refused = |one: &String| !one.contains("401");
    assert!(!browser.complaints.iter().any(refused), "{:?}", browser.complaints);

    fixture.end_service();
    fixture.serve("0.2", false, "");
    browser.until(&format!("{NOTICE}.includes('This service has no token')"));
    assert_eq!(browser.value(LOOPBACK_HIDDEN), true, "it knows nobody by the loopback");
    assert_eq!(browser.value("document.getElementById('withheld-token').hidden"), true);
}

#[test]
fn names_of_strangers_are_text_and_nothing_leaves_the_machine() {
    let test = "page::withheld::names_of_strangers_are_text_and_nothing_leaves_the_machine";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    let script =
        "<script>document.title='taken'</script><img src=http://192.0.2.1/x onerror=alert(1)>";
    let long = format!("{script}\u{202e}\u{7}\x1b[31m{}", "A".repeat(4096));
    fixture.work("<b>x\u{202e}\u{7}\"&", &long, 0);
    fixture.work("אבג דה", "אבג", 0);
    fixture.serve("0.2", true, "");
    browser.window(360, 740, true);
    fixture.open(browser, Some(TOKEN));
    browser.until("document.querySelectorAll('#processes tbody tr').length === 2");
    for width in [360, 1280] {
        browser.window(width, 740, width == 360);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
    }
    let text = browser.text("document.querySelector('#processes tbody').innerText");
    assert!(text.contains("<b>x") && text.contains("document.title='taken'"), "{text}");
    assert!(text.contains("אבג דה"), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{7}', '\u{1b}']), "{text}");
    browser.value(
        "[...document.querySelectorAll('#processes tbody tr')]
            .find((row) => row.innerText.includes('<b>')).querySelector('.open').click()",
    );
    browser.until("document.getElementById('panel-facts').innerText.includes('taken')");
    let elements =
        "document.querySelectorAll('main b:not(#totals b), main script, td img, dd img').length";
    assert_eq!(browser.value(elements), 0);
    assert!(browser.text("document.title").starts_with("Telltale"));
    // Each name keeps to its own cell, whichever way it is written.
    let isolated = "[...document.querySelectorAll('#processes td bdi, #panel dd')]
        .every((one) => getComputedStyle(one).unicodeBidi === 'isolate')";
    assert_eq!(browser.value(isolated), true);
    assert_eq!(browser.complaints, Vec::<String>::new());
    let elsewhere = browser.requests.iter().find(|address| !address.starts_with(&fixture.address));
    assert_eq!(elsewhere, None);

    // A script in the page's own text would not run either.
    let policy = "fetch('').then((answer) => answer.headers.get('content-security-policy'))";
    let policy = browser.text(policy);
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(
        browser
            .value("document.querySelectorAll('script:not([src]), [onclick], [onerror]').length"),
        0
    );
    browser.value(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = \"taken\"' }))",
    );
    assert!(browser.text("document.title").starts_with("Telltale"));
    browser.until("true");
    assert!(browser.complaints.iter().any(|one| one.contains("Content Security Policy")));
    assert_eq!(browser.value(LIVE), true);
}

#[test]
fn the_page_replaces_what_the_service_s_other_readers_replace() {
    let test = "page::withheld::the_page_replaces_what_the_service_s_other_readers_replace";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    fixture.serve("3600", false, "");
    browser.open(&fixture.address);
    let replaced = browser.value(
        "import('/assets/format.js').then(({ printable }) => Array.from({ length: 0x110000 }, (_, code) => code)
            .filter((code) => (code < 0xd800 || code > 0xdfff) && printable(String.fromCodePoint(code)) === '?' && code !== 63))",
    );
    let replaced: Vec<u32> = serde_json::from_value(replaced).unwrap();
    let expected: Vec<u32> = ('\0'..=char::MAX)
        .filter(|character| telltale_schema::text::steers(*character))
        .map(u32::from)
        .collect();
    assert_eq!(replaced, expected);
}
