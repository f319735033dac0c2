import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from elmo_tasks.replication import read_sources, report_page
from elmo_tasks.replication.overview.report_page import without_figures
from tests.replication.overview.folders import copied_results, write_run_file, write_run_folder

SCRIPT = "<script>alert(1)</script>&\"'\x1b[2J"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result files of the checkout, runs of two variants with their epochs, and texts that are HTML."""
    folder = copied_results(tmp_path_factory.mktemp("results"))
    for seed in (1, 2):
        write_run_file(folder, "srl", "baseline", seed, 60.0 + seed, machines=[SCRIPT])
        write_run_file(folder, "srl", "input", seed, 70.0 + seed, weights=(0.2, 0.5, 0.3), training_size=5000)
        write_run_file(folder, "srl", "input", seed + 2, 65.0 + seed, size=1000)
    write_run_folder(folder, "ner", "baseline", 1, 70.0)
    write_run_file(folder, "ner", SCRIPT.replace("/", ""), 1, 80.0)
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return report_page(read_sources(folder))


@pytest.fixture(scope="module")
def root(page: str) -> ElementTree.Element:
    """The page as XML."""
    return ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))


class TestReportPage:
    def test_it_has_every_cell_of_every_table(self, folder, root):
        """Oracle: the tables of the sources, read by an XML parser."""
        for table in read_sources(folder).tables:
            (section,) = [each for each in root.iter("section") if each.findtext("h2") == table.title]
            rows = [["".join(cell.itertext()) for cell in row] for row in section.iter("tr")]
            assert rows == [table.columns, *table.rows]
            assert section.find("div/table/caption").text == table.caption[0]

    def test_each_score_is_a_link_to_its_runs(self, root):
        """Oracle: the ids of the page, each there once; the seeds of a score of table 2 are its own, not table 1's."""
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        links = [link.get("href") for link in root.iter("a")]
        assert links and all(link.startswith("#") and link[1:] in ids for link in links)
        (link,) = [link for link in root.iter("a") if link.text == "52.08 ± 0.63 (2)"]
        (block,) = [each for each in root.iter("section") if each.get("id") == link.get("href")[1:]]
        assert block.findtext("h3") == "SNLI, baseline (Table 2)"
        seeds = [[cell.text for cell in row][:2] for row in block.iter("tr")][1:]
        assert [seed for seed, _ in seeds] == ["1", "2"]
        assert sum(float(dev) for _, dev in seeds) / 2 == pytest.approx(52.08, abs=0.01)

    def test_figures_are_drawn_of_the_runs(self, root):
        """Oracle: their titles: curves by epochs and by sizes, and the weights, whose means stand in the cells."""
        svg = "{http://www.w3.org/2000/svg}"
        figures = {each.get("aria-label"): each for each in root.iter("figure")}
        assert list(figures) == [
            "Figure 1: SRL, F1 on the dev set, by epochs",
            "Figure 1: SRL, F1 on the dev set, by the size of the training set",
            "Figure 1: NER, F1 on the dev set, by epochs",
            "Figure 2: the learnt weights of the layers",
        ]
        texts = [
            "".join(text.itertext())
            for text in figures["Figure 2: the learnt weights of the layers"].iter(f"{svg}text")
        ]
        assert {"0.20", "0.50", "0.30"} <= set(texts)

    def test_texts_of_files_are_shown_and_not_run(self, page, root):
        """Oracle: the elements that there are, and the text of one; no control characters, nothing from elsewhere."""
        assert not [
            element for element in root.iter() if element.tag.rpartition("}")[2] in ("script", "b", "iframe", "object")
        ]
        assert "<script>alert(1)</script>&\"'\\u001b[2J" in "".join(root.itertext())
        assert '"type": "</pre><b>"' in "".join(root.itertext())
        assert "\x1b" not in page
        assert "default-src 'none'" in page
        loaded = re.findall(r'(?:src|href|url)\s*[=(]\s*"?([^")\s>]+)', page)
        assert [each for each in loaded if not each.startswith(("#", "data:"))] == []

    def test_the_same_sources_give_the_same_page(self, folder, page):
        """Oracle: the page again; without figures there is nothing of matplotlib in it."""
        assert report_page(read_sources(folder)) == page
        assert "matplotlib" not in without_figures(page) and "<svg/>" in without_figures(page)

    def test_without_runs_it_says_that_there_are_no_figures(self, tmp_path):
        """Oracle: the sentence; the page in docs/ is that of the results of the checkout, and below 3 MB."""
        page = report_page(read_sources(copied_results(tmp_path)))
        assert "No run says its scores by epoch" in page
        assert len(page.encode()) < 3e6
