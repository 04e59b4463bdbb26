"""Names that are a reason for a person to look at a program, and what the reason is."""

from __future__ import annotations

import re
from enum import Enum


class Reason(str, Enum):
    """Why a person should look at a line, as a sentence that a student may read too."""

    PIECES = "A name is written in pieces"
    NAME = "A name is put together while the code runs"
    MODULE_NAME = "A module is asked for a name that the text does not say"
    RULE_NAME = "A name that the card lists is asked for as text"
    NAMESPACE = "Names are taken out of a namespace"
    IMPORT = "A module is fetched in another way than by an import of its name"
    CODE = "Code is made while the code runs"
    FRAMES = "The stack of calls is read"
    OBJECTS = "Objects of the whole process are read"
    BITS = "Bits are read as a number by Python itself"
    MEMORY = "Memory is reached past Python"
    PROCESSES = "A thread or a process is started"
    WATCH = "What watches PyTorch's calls is left or changed"
    PATCH = "A part of PyTorch is replaced"
    DEEP = "The text is too deep to be read"
    GRADER = "The grader's own code is used"


FRONT = frozenset({"grade", "predict", "show_storage", "show_graph", "written"})
"""What a notebook takes from `grader`."""

MODULES = {
    "_ctypes": Reason.MEMORY,
    "_posixsubprocess": Reason.PROCESSES,
    "_thread": Reason.PROCESSES,
    "builtins": Reason.CODE,
    "cffi": Reason.MEMORY,
    "code": Reason.CODE,
    "codeop": Reason.CODE,
    "concurrent": Reason.PROCESSES,
    "ctypes": Reason.MEMORY,
    "dill": Reason.CODE,
    "faulthandler": Reason.FRAMES,
    "gc": Reason.OBJECTS,
    "imp": Reason.IMPORT,
    "marshal": Reason.CODE,
    "mmap": Reason.MEMORY,
    "multiprocessing": Reason.PROCESSES,
    "numpy.ctypeslib": Reason.MEMORY,
    "pickle": Reason.CODE,
    "pkgutil": Reason.IMPORT,
    "pty": Reason.PROCESSES,
    "runpy": Reason.CODE,
    "subprocess": Reason.PROCESSES,
    "threading": Reason.PROCESSES,
    "torch._C": Reason.WATCH,
    "torch._VF": Reason.WATCH,
    "torch.library": Reason.PATCH,
    "torch.multiprocessing": Reason.PROCESSES,
    "torch.utils._python_dispatch": Reason.WATCH,
    "torch.utils.cpp_extension": Reason.CODE,
    "unittest.mock": Reason.PATCH,
}
"""Modules that are a reason, and what is below them."""

HARMLESS = {
    module: re.compile(names)
    for module, names in {
        "ctypes": r"string_at|memmove|memset|sizeof|c_\w+|Structure|create_string_buffer",
        "gc": r"collect|enable|disable|isenabled|freeze|unfreeze",
        "multiprocessing": r"cpu_count|current_process|parent_process",
        "pickle": r"dumps?|loads?|\w*[pP]ickler|\w*Error|\w+_PROTOCOL|PickleBuffer",
        "threading": r"R?Lock|Event|Condition|Semaphore|local|get_ident|(current|main)_thread",
        "torch._C": r"Generator|_TensorBase|_(is|set)_grad_enabled|_current_graph_task_id",
    }.items()
}
"""Modules of which some names are no reason; to import one is none either."""

BUILT_INS: dict[str, tuple[Reason, ...]] = {
    "__builtins__": (Reason.CODE,),
    "__loader__": (Reason.IMPORT,),
    "compile": (Reason.CODE,),
    "eval": (Reason.CODE,),
    "exec": (Reason.CODE,),
    "globals": (Reason.NAMESPACE,),
    "locals": (Reason.NAMESPACE,),
}

DOTTED = {
    "asyncio.create_subprocess_exec": Reason.PROCESSES,
    "asyncio.create_subprocess_shell": Reason.PROCESSES,
    "inspect.stack": Reason.FRAMES,
    "inspect.trace": Reason.FRAMES,
    "os.fork": Reason.PROCESSES,
    "os.forkpty": Reason.PROCESSES,
    "os.popen": Reason.PROCESSES,
    "os.system": Reason.PROCESSES,
    "sys.addaudithook": Reason.FRAMES,
    "sys.meta_path": Reason.IMPORT,
    "sys.modules": Reason.IMPORT,
    "sys.path_hooks": Reason.IMPORT,
    "sys.setprofile": Reason.FRAMES,
    "sys.settrace": Reason.FRAMES,
    "torch.jit.fork": Reason.PROCESSES,
    "types.CodeType": Reason.CODE,
    "types.FunctionType": Reason.CODE,
}

ATTRIBUTES: tuple[tuple[re.Pattern[str], Reason], ...] = tuple(
    (re.compile(names), reason)
    for names, reason in (
        (
            r"_?getframe|_current_frames|currentframe|get(outer|inner)frames|walk_(stack|tb)|tb_frame"
            r"|f_(locals|globals|back|builtins|code)|(gi|cr|ag)_frame",
            Reason.FRAMES,
        ),
        (r"get_(objects|referrers|referents)", Reason.OBJECTS),
        (r"__globals__|__builtins__|__subclasses__|__closure__|cell_contents", Reason.NAMESPACE),
        (r"__code__", Reason.CODE),
        (r"posix_spawnp?|spawn[lv]p?e?|exec[lv]p?e?|run_in_executor|to_thread", Reason.PROCESSES),
        (
            r"_?Disable[A-Z]\w*|_disable_\w*(mode|dispatch|functorch|function|override)\w*"
            r"|_?(Exclude|Include|Force)DispatchKeyGuard|_AutoDispatchBelow\w*|no_dispatch"
            r"|_(pop|push|unset|set|len|get)_\w*(dispatch|function)\w*"
            r"|_make_(wrapper_)?subclass|Torch(Dispatch|Function)Mode",
            Reason.WATCH,
        ),
    )
)
"""Names that are a reason whatever they are asked of."""

NAMESPACES = frozenset({"__dict__", "__mro__", "__bases__"})
READ_OF_CODE = frozenset({"co_varnames", "co_argcount", "co_name", "co_names", "co_kwonlyargcount"})
WATCHING_METHODS = frozenset({"__torch_dispatch__", "__torch_function__"})
FETCHES_MODULES = frozenset(
    {"import_module", "__import__", "find_spec", "resolve_name", "load_module"}
)
MAKES_TEXT = frozenset(
    {"join", "format", "format_map", "replace", "decode", "translate", "chr", "lower", "upper"}
    | {"swapcase", "title", "capitalize", "strip", "lstrip", "rstrip"}
    | {"removeprefix", "removesuffix"}
)
