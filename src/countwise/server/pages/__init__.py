"""The pages: server-rendered HTML that calls the service and computes nothing.

Owns what a browser sees. Templates are in `templates`, everything a browser loads in `static`;
the look is that of `countwise.pages`. One file a group of pages; `shell` is around all of them.
"""

from countwise.server.pages.site import refused, router

__all__ = ["refused", "router"]
