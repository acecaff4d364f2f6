//! The page in a real browser: Chromium, headless, as Debian's package `chromium` installs it. Where there is none, the
//! tests say so and do nothing.

#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up figures"
)]

#[path = "fixtures/runs.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod runs;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runs::Fixture;
use serde_json::Value as Json;

/// Longest time that the browser may take.
const DEADLINE: Duration = Duration::from_mins(2);

/// The browser, if there is one.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("\n*** SKIPPED: no Chromium in PATH, so the page was NOT tested: apt-get install chromium ***\n");
    }
    found
}

/// Opens a page and returns what became of its document, and what the browser's console said.
fn open(browser: &Path, page: &str, more: &[OsString]) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    fs::write(&file, page).expect("written");
    let output = folder.path().join("dom.html");
    let errors = folder.path().join("log");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ])
        .args(["--enable-logging=stderr", "--virtual-time-budget=4000", "--window-size=1400,1000"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(more)
        .arg("--dump-dom")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&output).expect("created"))
        .stderr(fs::File::create(&errors).expect("created"))
        .spawn()
        .expect("started");
    let started = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        if started.elapsed() > DEADLINE {
            child.kill().expect("killed");
            child.wait().expect("waited");
            panic!("the browser took longer than {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = String::from_utf8_lossy(&fs::read(&errors).expect("read")).into_owned();
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (fs::read_to_string(&output).expect("read"), console)
}

/// The page of a run. `SWEEP_PICTURES=/tmp cargo test --test report_page` keeps them to be looked at.
fn page(run: &Fixture) -> String {
    let page = run.with(sweep::report::page);
    if let Some(folder) = std::env::var_os("SWEEP_PICTURES") {
        let name: String = run.manifest.sweep.name.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
        fs::write(Path::new(&folder).join(format!("{name}.html")), &page).expect("written");
    }
    page
}

/// A copy of the page that a script plays with: what it returns is written into the document. The policy of the real page
/// would not let it run, which another test shows.
fn play(browser: &Path, page: &str, script: &str) -> Json {
    let policy = page.find("<meta http-equiv").expect("a policy");
    let end = policy + page[policy..].find('>').expect("its end") + 1;
    let page = format!("{}{}", &page[..policy], &page[end..]);
    let harness = format!(
        "<script>
        const $ = (id) => document.getElementById(id);
        const cells = () => [...document.querySelectorAll('#map rect[data-i]')];
        const fire = (element, type, more = {{}}) => element.dispatchEvent(new PointerEvent(type, {{ bubbles: true, clientX: 90, clientY: 90, ...more }}));
        const press = (key) => $('map').dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));
        const set = (element, value) => {{ element.value = value; element.dispatchEvent(new Event('change', {{ bubbles: true }})); }};
        const figures = () => [...document.querySelectorAll('#map .figure')].map((text) => text.textContent);
        (async () => {{
            let result;
            try {{ result = await (async () => {{ {script} }})(); }} catch (error) {{ result = {{ error: String(error.stack) }}; }}
            const pre = document.createElement('pre');
            pre.id = 'result';
            pre.textContent = JSON.stringify(result);
            document.body.append(pre);
        }})();
        </script></body>"
    );
    let played = page.replacen("</body>", &harness, 1);
    let (dom, console) = open(browser, &played, &[]);
    assert_eq!(console, Vec::<String>::new());
    let from = dom.find("<pre id=\"result\">").expect("a result") + 17;
    let text = &dom[from..from + dom[from..].find("</pre>").expect("its end")];
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let result: Json = serde_json::from_str(&text).expect("JSON");
    assert!(result.get("error").is_none(), "{result:#}");
    result
}

#[test]
fn the_page_opens_from_disk_under_its_own_policy() {
    let Some(browser) = chromium() else { return };
    for run in [runs::sctp_rcvbuf(), runs::missing_cells(), runs::one_cell(), runs::tcp_buffers(), runs::hostile()] {
        let (dom, console) = open(&browser, &page(&run), &[]);
        assert_eq!(console, Vec::<String>::new(), "{}", run.manifest.sweep.name);
        assert_eq!(dom.matches(" data-i=\"").count(), 2 * run.cells.len(), "each cell is on the map and in the table");
        assert!(dom.contains(&format!("{0} of {0} cells", run.cells.len())));
    }
}

#[test]
fn a_foreign_script_is_not_run() {
    let Some(browser) = chromium() else { return };
    let foreign = page(&runs::one_cell()).replacen("</body>", "<script>document.title = 'hacked'</script></body>", 1);
    let (dom, console) = open(&browser, &foreign, &[]);
    assert!(!dom.contains("<title>hacked"));
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
}

#[test]
fn pointing_clicking_and_keys_show_a_cell() {
    let Some(browser) = chromium() else { return };
    let result = play(
        &browser,
        &page(&runs::sctp_rcvbuf()),
        "const details = () => $('details').textContent;
        const seen = { hint: details() };
        fire(cells()[0], 'pointermove');
        seen.hover = details();
        seen.tip = $('tip').textContent;
        fire(cells()[0], 'click');
        fire(cells()[5], 'pointermove');
        seen.pinned = details() .replace(/ · kept.*?goes?/, '');
        fire($('map'), 'pointerleave');
        seen.tipGone = $('tip').hidden;
        press('Escape');
        const ids = [];
        const id = () => document.querySelector('#details code').textContent;
        ids.push(id());
        press('ArrowRight'); ids.push(id());
        press('ArrowLeft'); ids.push(id());
        press('ArrowDown'); ids.push(id());
        for (let i = 0; i < 40; i += 1) press('ArrowRight');
        ids.push(id());
        press('Enter');
        seen.kept = details().includes('kept');
        seen.cursors = document.querySelectorAll('.cursor[visibility=visible]').length;
        return { ...seen, ids };",
    );
    let text = |name: &str| result[name].as_str().unwrap_or_default();
    assert!(text("hint").contains("arrow keys"));
    for word in [
        "rcvbuf",
        "measured",
        "Completion time",
        "client, receive",
        "2304 B",
        "raised to the minimum",
        "repeat",
        "Why",
        "1 KiB asked, raised to 2304 bytes",
        "Try: ask for what the workload needs",
    ] {
        assert!(text("hover").contains(word), "{word}: {}", text("hover"));
    }
    assert!(text("tip").contains("link.topology: loopback"), "{}", text("tip"));
    assert_eq!(text("pinned")[..21], text("hover")[..21], "a cell that was clicked stays");
    assert_eq!(result["tipGone"], true);
    let ids: Vec<&str> = result["ids"].as_array().expect("ids").iter().filter_map(Json::as_str).collect();
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[0], ids[2], "there and back");
    assert_ne!(ids[3], ids[4]);
    assert_eq!((result["kept"].clone(), result["cursors"].clone()), (true.into(), 1.into()));
}

#[test]
fn metric_axes_filter_table_and_theme_work() {
    let Some(browser) = chromium() else { return };
    let run = runs::sctp_rcvbuf();
    let result = play(
        &browser,
        &page(&run),
        "const seen = { before: figures(), panels: document.querySelectorAll('figure').length };
        set($('metric'), 1);
        seen.goodput = figures();
        seen.legend = $('legend').textContent;
        set($('stat'), 3);
        seen.spread = figures();
        set($('stat'), 0);
        const [x, y] = [$('x').value, $('y').value];
        set($('x'), y);
        seen.swapped = $('y').value === x;
        set($('y'), '');
        seen.morePanels = document.querySelectorAll('figure').length;
        const filter = [...document.querySelectorAll('#filters select')].find((select) => select.parentElement.textContent.startsWith('nodelay'));
        set(filter, 1);
        seen.matching = $('matching').textContent;
        seen.dim = document.querySelectorAll('#map .dim').length;
        $('search').value = 'rcvbuf=64';
        $('search').dispatchEvent(new Event('input', { bubbles: true }));
        seen.searched = $('matching').textContent;
        $('clear').click();
        seen.cleared = $('matching').textContent;
        const column = () => [...document.querySelectorAll('#table th button')].find((button) => button.textContent.startsWith('completion'));
        const firsts = () => document.querySelector('#table tbody tr').textContent;
        column().click();
        seen.fastest = firsts();
        column().click();
        seen.slowest = firsts();
        seen.sort = column().parentElement.getAttribute('aria-sort');
        navigator.clipboard.writeText = async (text) => { seen.csv = text; };
        $('copy').click();
        await new Promise((done) => setTimeout(done, 50));
        seen.copied = $('copy').textContent;
        const ground = () => getComputedStyle(document.body).backgroundColor;
        seen.grounds = [ground()];
        $('theme').click(); seen.grounds.push(ground());
        $('theme').click(); seen.grounds.push(ground());
        return seen;",
    );
    let list = |name: &str| result[name].as_array().cloned().unwrap_or_default();
    assert_eq!(list("before").len(), run.cells.len());
    assert_ne!(list("before"), list("goodput"));
    assert!(
        list("goodput")[0].as_str().is_some_and(|text| text.ends_with("kbit/s") || text.ends_with('k')),
        "{:?}",
        list("goodput")[0]
    );
    assert!(result["legend"].as_str().is_some_and(|text| text.contains("darker is faster, which is better")));
    assert!(list("spread")[0].as_str().is_some_and(|text| text.ends_with('%')));
    assert_eq!((&result["panels"], &result["swapped"], &result["morePanels"]), (&4.into(), &true.into(), &24.into()));
    assert_eq!((&result["matching"], &result["dim"]), (&"24 of 48 cells".into(), &24.into()));
    assert_eq!((&result["searched"], &result["cleared"]), (&"4 of 48 cells".into(), &"48 of 48 cells".into()));
    let text = |name: &str| result[name].as_str().unwrap_or_default();
    assert!(
        text("fastest").contains("1.01 ms") && text("slowest").contains("4.70 s"),
        "{} {}",
        text("fastest"),
        text("slowest")
    );
    assert_eq!(text("sort"), "descending");
    let csv = text("csv");
    assert!(
        csv.starts_with("link.topology,rcvbuf,sndbuf,nodelay,outcome,completion_ns,completion_spread,"),
        "{}",
        &csv[..120]
    );
    assert_eq!(csv.matches("\r\n").count(), run.cells.len() + 1);
    assert_eq!(text("copied"), "Copied");
    let grounds = list("grounds");
    assert_ne!(grounds[0], grounds[1]);
    assert_eq!(grounds[0], grounds[2]);
}

#[test]
fn one_axis_is_a_line_and_more_are_a_map_again() {
    let Some(browser) = chromium() else { return };
    let run = runs::one_axis();
    let result = play(
        &browser,
        &page(&run),
        "const seen = { curves: document.querySelectorAll('#map .curve').length, dots: document.querySelectorAll('#map .dot').length };
        seen.figures = figures();
        seen.hit = cells().length;
        seen.legend = $('legend').textContent;
        fire(cells()[0], 'click');
        seen.details = $('details').textContent;
        const cursor = document.querySelector('.cursor[visibility=visible]');
        seen.cursor = [cursor.getAttribute('x'), cells()[0].getAttribute('x')];
        press('ArrowRight');
        const moved = document.querySelector('.cursor[visibility=visible]');
        seen.moved = [moved.getAttribute('x'), cells()[1].getAttribute('x')];
        set($('x'), '');
        seen.mapped = [document.querySelectorAll('#map .curve').length, cells().length, figures().length];
        return seen;",
    );
    assert_eq!((&result["curves"], &result["dots"], &result["hit"]), (&1.into(), &7.into(), &8.into()), "{result:#}");
    let text = |name: &str| result[name].as_str().unwrap_or_default();
    assert!(
        text("legend").contains("(lower is better), logarithmic scale; band and bars reach from the smallest"),
        "{}",
        text("legend")
    );
    assert!(text("details").contains("rcvbuf1 KiB"), "{}", text("details"));
    assert_eq!(result["cursor"][0], result["cursor"][1]);
    assert_eq!(result["moved"][0], result["moved"][1]);
    let figures = result["figures"].as_array().expect("figures");
    assert!(figures.contains(&"timed out".into()) && figures.iter().any(|text| text == "2.03 s"), "{figures:?}");
    assert_eq!(result["mapped"][0], 0, "cells side by side are no line");
}

#[test]
fn a_sampled_cell_shows_its_buffers_over_time() {
    let Some(browser) = chromium() else { return };
    let result = play(
        &browser,
        &page(&runs::streams()),
        "const seen = [];
        for (const cell of cells()) {
            fire(cell, 'click');
            press('Escape');
            const paths = [...document.querySelectorAll('.track path')];
            seen.push({ text: $('details').textContent, legend: document.querySelector('.over-time .samples').textContent,
                paths: paths.length, ends: document.querySelectorAll('.track').length,
                inside: paths.every((path) => { const box = path.getBBox(); return box.x >= 0 && box.y >= 0 && box.x + box.width <= 720 && box.y + box.height <= 220; }),
                coloured: new Set(paths.map((path) => getComputedStyle(path).stroke)).size });
        }
        return { seen };",
    );
    let seen = result["seen"].as_array().expect("cells");
    assert_eq!(seen.len(), 8);
    for cell in seen {
        let (text, legend) = (cell["text"].as_str().expect("text"), cell["legend"].as_str().expect("text"));
        assert!(text.contains("Buffers over time, repeat 0"), "{text}");
        let tcp = text.contains("protocoltcp");
        assert_eq!(legend.contains("congestion window"), tcp, "{legend}");
        let lines = match (tcp, text.contains("rcvbuf64 KiB")) {
            (true, _) => 7,
            // The server tells nothing.
            (false, true) => 2,
            (false, false) => 4,
        };
        assert_eq!((&cell["paths"], &cell["ends"]), (&lines.into(), &2.into()), "{text}");
        assert_eq!((&cell["inside"], &cell["coloured"]), (&true.into(), &(if tcp { 4 } else { 2 }).into()));
    }
}

#[test]
fn figures_are_written_as_everywhere_else() {
    let Some(browser) = chromium() else { return };
    // Every power of two with what lies beside it, as completion, goodput and size at once.
    let mut run = runs::one_axis();
    let template = run.records[0].clone();
    run.records = (0..120_u64)
        .map(|index| {
            let value = (1 << (index / 3)) + index % 3 * 333;
            let mut record = template.clone();
            record.cell = format!("{index:04}");
            record.axes.0[0].1 = sweep::settings::Value::Int(index + 1);
            let mut measured = sweep::measurement::Measurement {
                outcome: sweep::measurement::Outcome::Measured,
                completion_ns: Some(value),
                goodput_bps: Some(value),
                ..sweep::measurement::Measurement::default()
            };
            measured.client.rcvbuf.end = Some(value);
            measured.client.voluntary_switches = Some(value);
            measured.client.involuntary_switches = Some(0);
            measured.server.voluntary_switches = Some(0);
            measured.server.involuntary_switches = Some(0);
            record.measurement = measured;
            record
        })
        .collect();
    run.cells = sweep::stats::summarise(&run.records);
    let result = play(
        &browser,
        &page(&run),
        "const names = [...document.querySelectorAll('#table th')].map((cell) => cell.textContent);
        const at = ['completion', 'goodput', 'switches', 'cell'].map((name) => names.indexOf(name));
        return { rows: [...document.querySelectorAll('#table tbody tr')].map((row) => at.map((column) => row.cells[column].textContent)) };",
    );
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), run.records.len());
    for row in rows {
        let record = run.records.iter().find(|record| row[3] == record.cell.as_str()).expect("its record");
        for (column, name) in ["completion", "goodput", "switches"].into_iter().enumerate() {
            let metric = sweep::plot::Metric::named(name, &[]).expect("a metric");
            let value = metric.of(&record.measurement).expect("a figure");
            assert_eq!(row[column].as_str(), Some(metric.unit().show(value.get()).as_str()), "{name} {value}");
        }
    }
}

#[test]
fn what_a_program_printed_can_be_chosen_and_is_written_as_in_pictures() {
    let Some(browser) = chromium() else { return };
    let run = runs::printed();
    let result = play(
        &browser,
        &page(&run),
        "const names = [...$('metric').options].map((option) => option.textContent);
        set($('metric'), names.indexOf('rate (msg/s)'));
        const legend = $('legend').textContent;
        fire(cells()[0], 'pointermove');
        const heads = [...document.querySelectorAll('#table th')].map((cell) => cell.textContent);
        const at = ['rtt_avg', 'rate', 'offset', 'cell'].map((name) => heads.indexOf(name));
        const rows = [...document.querySelectorAll('#table tbody tr')].map((row) => at.map((column) => row.cells[column].textContent));
        return { names, legend, details: $('details').textContent, rows };",
    );
    for name in ["rtt_avg", "rate (msg/s)", "offset"] {
        assert!(result["names"].as_array().expect("names").contains(&name.into()), "{name}: {result}");
    }
    let text = |name: &str| result[name].as_str().expect("a text").to_owned();
    assert!(text("legend").contains("rate (msg/s)") && text("legend").contains("which is better"), "{result}");
    assert!(text("details").contains("/usr/bin/meter --size '<b>', exit code 0"), "{result}");
    assert!(text("details").contains("rate (msg/s)") && text("details").contains("offset"), "{result}");
    let printed = sweep::plot::Metric::printed(&run.records);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), run.cells.len());
    for row in rows {
        let cell = run.cells.iter().find(|cell| row[3] == cell.cell.as_str()).expect("its cell");
        for (column, name) in ["rtt_avg", "rate", "offset"].into_iter().enumerate() {
            let unit = sweep::plot::Metric::named(name, &printed).expect("printed").unit();
            let summary = cell.metrics.iter().find(|metric| metric.name == name).expect("its summary");
            let factor = if name == "rtt_avg" { 1e6 } else { 1.0 };
            let median = summary.median.expect("a median") * factor;
            assert_eq!(row[column].as_str(), Some(unit.show(median).as_str()), "{name}");
        }
    }
}

#[test]
fn hostile_names_do_nothing() {
    let Some(browser) = chromium() else { return };
    let result = play(
        &browser,
        &page(&runs::hostile()),
        "for (const cell of cells()) { fire(cell, 'pointermove'); fire(cell, 'click'); press('Escape'); }
        const wide = document.documentElement.scrollWidth <= window.innerWidth;
        return { hacked: typeof window.hacked, scripts: document.scripts.length, images: document.images.length, wide };",
    );
    assert_eq!((&result["hacked"], &result["images"]), (&"undefined".into(), &0.into()));
    assert_eq!(result["scripts"], 3, "data, page, and this test");
    assert_eq!(result["wide"], true, "nothing pushes the page wider than its window");
}

#[test]
fn ten_thousand_cells_stay_fast() {
    let Some(browser) = chromium() else { return };
    let result = play(
        &browser,
        &page(&runs::grid(200, 50, 2)),
        "const start = performance.now();
        set($('metric'), 1);
        const drawn = cells().length;
        const rows = document.querySelectorAll('#table tbody tr').length;
        $('more').click();
        return { drawn, rows, more: document.querySelectorAll('#table tbody tr').length };",
    );
    assert_eq!((&result["drawn"], &result["rows"], &result["more"]), (&10_000.into(), &200.into(), &1200.into()));
}

#[test]
fn no_text_of_a_map_lies_over_another_and_every_cell_is_filled() {
    let Some(browser) = chromium() else { return };
    for run in [runs::explained(), runs::incomplete(), runs::one_axis(), runs::grid(20, 3, 2)] {
        let result = play(
            &browser,
            &page(&run),
            "const over = [];
            document.querySelector('.columns').style.gridTemplateColumns = 'minmax(0, 1fr)';
            for (const width of [1376, 376, 240]) {
                document.body.style.width = `${width}px`;
                window.dispatchEvent(new Event('resize'));
                await new Promise((done) => setTimeout(done, 500));
                for (const panel of document.querySelectorAll('.panel, .ticks')) {
                    const texts = [...panel.querySelectorAll('text, span')].map((text) => [text.textContent, text.getBoundingClientRect()]);
                    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
                        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                        /* boxes are larger than letters */ if (across > 3 && down > 4) over.push(`${width}: ${one} and ${other}`);
                    }));
                }
            }
            const hatches = new Set(cells().map((cell) => cell.getAttribute('fill')).filter((fill) => fill?.startsWith('url(#')));
            const unknown = [...hatches].filter((fill) => !document.getElementById(fill.slice(5, -1)));
            return { over, unknown };",
        );
        assert_eq!(
            (&result["over"], &result["unknown"]),
            (&serde_json::json!([]), &serde_json::json!([])),
            "{result:#}"
        );
    }
}
