"""Self-contained HTML pages: one document with its style and scripts, which loads nothing and works without a network.

1. `chart.py` has charts as data: points with amounts by band, markers and a limit. It knows neither sessions nor prices.
2. `shapes.py` computes a chart's shapes. `chart.html` writes them as SVG, with a legend and a table of the same amounts.
3. `templates.py` fills in templates. Every value is escaped: what comes from a log never becomes markup.
4. `document.py` joins body, style and scripts, and names exactly these in a Content-Security-Policy, so nothing else is loaded or run.

`chart.js` lets arrow keys and the pointer walk over a chart's points. Without it, each point can still be reached with Tab.
"""

from .chart import DOLLARS, Chart, ChartMarker, ChartPoint
from .document import HtmlPage, document
from .templates import chart_markup

__all__ = ["DOLLARS", "Chart", "ChartMarker", "ChartPoint", "HtmlPage", "chart_markup", "document"]
