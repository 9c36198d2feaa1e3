//! What a process claims and cannot have: absent, with the reason.

use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_schema::memory::MemoryKind;

use super::browser::Browser;
use super::fixture::{Fixture, TOKEN};
use crate::cli::command::snapshot;

const WHY: &str = "it claims 13.0 GiB of DRAM where there are 12.0 GiB";

#[test]
fn a_refused_claim_has_its_reason_in_the_table_and_in_the_details() {
    let test = "page::refused::a_refused_claim_has_its_reason";
    let Some(mut browser) = Browser::start(test) else { return };
    let browser = &mut browser;
    let mut fixture = Fixture::new("n150");
    let chip = snapshot(&fixture.root).devices.remove(0);
    let mut options = Options::new("test 1");
    (options.directory, options.disabled) = (Some(fixture.root.join("run/tt")), false);
    let runtime = Runtime::start(options);
    let identity = chip.identity.chip().unwrap().clone();
    let device =
        runtime.open_device(DeviceDescription { identity, ..DeviceDescription::default() });
    device.allocate(MemoryKind::Dram, 0x1000, 13 << 30);
    fixture.serve("0.2", true, "");
    fixture.open(browser, Some(TOKEN));
    for column in ["DRAM", "DRAM peak", "L1", "Buffers"] {
        let cell = format!("document.querySelector('#processes td[data-column=\"{column}\"]')");
        browser.until(&format!("{cell}?.title === 'refused: {WHY}' && {cell}.textContent === '–'"));
    }
    browser.value("document.querySelector('#processes tbody .open').click()");
    let facts = "document.getElementById('panel-facts').innerText";
    let name = format!("{} refused", chip.id);
    browser.until(&format!("{facts}.includes('{name}') && {facts}.includes('{WHY}')"));
}
